// Numbers as people read them, in the words of the command line.

// What stands for a number that there is not.
export const NONE = '–';

const scaled = (value) => {
  const units = [['', 1], ['k', 1e3], ['M', 1e6], ['G', 1e9]];
  // What would be rounded to 1000.0 belongs to the next unit.
  const [unit, by] = units.find(([, by]) => value / by < 999.95) ?? ['T', 1e12];
  return `${(value / by).toFixed(1)} ${unit}`;
};

export const rate = (hz) => (hz > 0 ? `${scaled(hz)}Hz` : NONE);
export const throughput = (perSecond) => (perSecond > 0 ? `${scaled(perSecond)}B/s` : NONE);
export const bytes = (count) => (count < 1000 ? `${count} B` : `${scaled(count)}B`);

// A time that passed, in microseconds.
export const duration = (us) => {
  if (us < 99.95) return `${us.toFixed(1)} µs`;
  if (us < 999.5) return `${us.toFixed(0)} µs`;
  return us < 999_950 ? `${(us / 1e3).toFixed(1)} ms` : `${(us / 1e6).toFixed(1)} s`;
};

// A number of a message: as few digits as tell it apart on a plot.
export const number = (value, digits = 6) => {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e7 || size < 1e-4) ? value.toExponential(2) : String(+value.toPrecision(digits));
  return text.replace('-', '−');
};

export const many = (count, one, more) => `${count} ${count === 1 ? one : more}`;

// A time of the day, where the browser is, of milliseconds since 1970.
export const clock = (ms) => new Date(ms).toLocaleTimeString();
// A day, by the clock of the world.
export const day = (ms) => new Date(ms).toISOString().slice(0, 10);

// The last part of a type's name.
export const short = (type) => type.split('/').pop();
