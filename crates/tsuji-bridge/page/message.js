// What messages are made of, by the type definitions that rosapi tells.

const NUMBERS = new Set(['float', 'double', 'octet', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64',
  'boolean']);
// Arrays of a set length that are longer are not written out.
const WRITTEN_MAX = 128;
const DEPTH_MAX = 16;

// A message in which nothing is set. A stamp is left out of a header: then it is the time when it is sent.
export const blank = (definitions) => {
  const one = (type, depth) => {
    if (type === 'string') return '';
    if (type === 'boolean') return false;
    if (NUMBERS.has(type)) return 0;
    const definition = definitions.find((it) => it.type === type);
    if (!definition || DEPTH_MAX < depth) return {};
    const message = {};
    definition.fieldnames.forEach((name, at) => {
      if (type === 'std_msgs/Header' && name === 'stamp') return;
      const [fieldType, count] = [definition.fieldtypes[at], definition.fieldarraylen[at]];
      if (count < 0) message[name] = one(fieldType, depth + 1);
      else message[name] = Array.from({ length: count <= WRITTEN_MAX ? count : 0 }, () => one(fieldType, depth + 1));
    });
    return message;
  };
  return definitions.length ? one(definitions[0].type, 0) : {};
};

// The numbers in messages of a type: `linear.x`, `ranges[0]`.
export const numbers = (definitions) => {
  const found = [];
  const look = (type, path, depth) => {
    if (NUMBERS.has(type)) found.push(path);
    const definition = definitions.find((it) => it.type === type);
    if (!definition || DEPTH_MAX < depth || PATHS_MAX < found.length) return;
    definition.fieldnames.forEach((name, at) => {
      const inside = `${path ? `${path}.` : ''}${name}`;
      look(definition.fieldtypes[at], definition.fieldarraylen[at] < 0 ? inside : `${inside}[0]`, depth + 1);
    });
  };
  if (definitions.length) look(definitions[0].type, '', 0);
  return found.slice(0, PATHS_MAX);
};
const PATHS_MAX = 500;

// The parts of a path, or nothing where it is none.
export const parts = (path) => {
  if (!/^[A-Za-z_]\w*(\[\d+\])*(\.[A-Za-z_]\w*(\[\d+\])*)*$/.test(path)) return undefined;
  return path.match(/\w+/g).map((it) => (/^\d/.test(it) ? Number(it) : it));
};

// What stands there in a message as a number: NaN where none does.
export const valueAt = (message, path) => {
  const value = path.reduce((it, part) => (it !== null && typeof it === 'object' ? it[part] : undefined), message);
  return ['number', 'bigint', 'boolean'].includes(typeof value) ? Number(value) : NaN;
};

// A message as a text of JSON of which long lists and texts are cut.
export const readable = (message) => {
  const cut = (it) => {
    if (typeof it === 'bigint') return Number.isSafeInteger(Number(it)) ? Number(it) : String(it);
    if (typeof it === 'number' && !Number.isFinite(it)) return String(it);
    if (typeof it === 'string' && TEXT_MAX < it.length) return `${it.slice(0, TEXT_MAX)}… ${it.length} letters`;
    if (ArrayBuffer.isView(it) || Array.isArray(it)) {
      const shown = Array.from(it.slice(0, SHOWN_MAX), cut);
      return SHOWN_MAX < it.length ? [...shown, `… ${it.length} in all`] : shown;
    }
    if (it !== null && typeof it === 'object') return Object.fromEntries(Object.entries(it).map(([key, value]) => [key, cut(value)]));
    return it;
  };
  // Lists of numbers and texts stand in one line.
  const text = JSON.stringify(cut(message), null, 2);
  return text.replace(/\[\n\s+([^[\]{}]*?)\n\s+\]/g, (_, inside) => `[${inside.replace(/\n\s+/g, ' ')}]`);
};

const SHOWN_MAX = 24;
const TEXT_MAX = 2000;

// What is written as JSON, or an error that says where it is none.
export const parse = (text) => {
  try {
    const value = JSON.parse(text.trim() === '' ? '{}' : text);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('expected an object: { … }');
    return value;
  } catch (error) {
    const at = /position (\d+)/.exec(error.message);
    const line = at && text.slice(0, Number(at[1])).split('\n').length;
    throw new Error(line && !error.message.includes('line') ? `line ${line}: ${error.message}` : error.message, { cause: error });
  }
};
