// Lines over time on a canvas.
import { number } from './format.js';

const LEFT = 64;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 26;
// Where nothing came for so long, in seconds, a line has a gap.
const GAP = 2;

export const DASHES = [[], [7, 4], [2, 3]];

// Numbers that are easy to read, evenly from low to high.
const ticks = (low, high, count) => {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => rough <= it);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9 && found.length < 30; at++) found.push(at * step);
  return found;
};

// The first of the times that is not before `from`.
export const since = (times, from) => {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < from) low = middle + 1; else high = middle;
  }
  return low;
};

const range = (lines, from) => {
  let [low, high] = [Infinity, -Infinity];
  for (const { times, values } of lines) {
    for (let at = since(times, from); at < values.length; at++) {
      if (values[at] < low) low = values[at];
      if (values[at] > high) high = values[at];
    }
  }
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.08 || Math.max(Math.abs(high) * 0.1, 0.5);
  return [low - margin, high + margin];
};

// Draws lines of { times, values, colour, dash } from `seconds` before `now` until then; times are in seconds.
export const draw = (canvas, lines, now, seconds) => {
  const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
  if (!width || !height) return;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  const style = getComputedStyle(canvas);
  const ink = (name) => style.getPropertyValue(name).trim();
  const it = canvas.getContext('2d');
  it.setTransform(scale, 0, 0, scale, 0, 0);
  it.clearRect(0, 0, width, height);
  it.font = '12px system-ui, sans-serif';
  const [bottom, top] = range(lines, now - seconds);
  const x = (time) => LEFT + (1 + (time - now) / seconds) * (width - LEFT - RIGHT);
  const y = (value) => TOP + ((top - value) / (top - bottom)) * (height - TOP - BOTTOM);

  it.lineWidth = 1;
  it.strokeStyle = ink('--line');
  it.fillStyle = ink('--faint');
  it.textBaseline = 'middle';
  it.textAlign = 'right';
  for (const value of ticks(bottom, top, height < 300 ? 4 : 6)) {
    const at = Math.round(y(value)) + 0.5;
    it.beginPath();
    it.moveTo(LEFT, at);
    it.lineTo(width - RIGHT, at);
    it.stroke();
    // What is nothing but for rounding is nothing.
    it.fillText(number(Math.abs(value) < (top - bottom) * 1e-9 ? 0 : value), LEFT - 8, at);
  }
  it.textAlign = 'center';
  it.textBaseline = 'alphabetic';
  for (const ago of ticks(0, seconds, width < 500 ? 3 : 6)) {
    const at = Math.round(x(now - ago)) + 0.5;
    it.beginPath();
    it.moveTo(at, TOP);
    it.lineTo(at, height - BOTTOM);
    it.stroke();
    it.textAlign = ago === 0 ? 'right' : 'center';
    it.fillText(ago === 0 ? 'now' : `−${ago} s`, at, height - 8);
  }

  it.save();
  it.beginPath();
  it.rect(LEFT, 0, width - LEFT - RIGHT / 2, height);
  it.clip();
  it.lineWidth = 2;
  it.lineJoin = 'round';
  for (const { times, values, colour, dash } of lines) {
    it.strokeStyle = ink(colour);
    it.fillStyle = it.strokeStyle;
    it.setLineDash(dash);
    it.beginPath();
    const first = Math.max(0, since(times, now - seconds) - 1);
    let last = -Infinity;
    for (let at = first; at < times.length; at++) {
      if (!Number.isFinite(values[at])) continue;
      if (times[at] - last > GAP) it.moveTo(x(times[at]), y(values[at])); else it.lineTo(x(times[at]), y(values[at]));
      last = times[at];
    }
    it.stroke();
    it.setLineDash([]);
    if (last > -Infinity) {
      it.beginPath();
      it.arc(x(last), y(values[times.lastIndexOf(last)]), 3.5, 0, 2 * Math.PI);
      it.fill();
    }
  }
  it.restore();
};
