// Pictures of sensor_msgs as pixels of a canvas.

const RAW = ['sensor_msgs/msg/Image', 'sensor_msgs/Image'];
const PACKED = ['sensor_msgs/msg/CompressedImage', 'sensor_msgs/CompressedImage'];

export const isPicture = (type) => RAW.includes(type) || PACKED.includes(type);
export const isPacked = (type) => PACKED.includes(type);

// Where in a pixel red, green and blue are, of how many bytes.
const COLOURS = {
  rgb8: [3, 0, 1, 2], '8UC3': [3, 2, 1, 0], bgr8: [3, 2, 1, 0], rgba8: [4, 0, 1, 2], bgra8: [4, 2, 1, 0], '8UC4': [4, 2, 1, 0],
};
const GREYS = { mono8: 'getUint8', '8UC1': 'getUint8', mono16: 'getUint16', '16UC1': 'getUint16', '32FC1': 'getFloat32' };
const SIZES = { getUint8: 1, getUint16: 2, getFloat32: 4 };
// Of these the least and the largest value of each picture are black and white.
const SCALED = ['16UC1', 'mono16', '32FC1'];
const PIXELS_MAX = 64 << 20;

export const ENCODINGS = [...Object.keys(COLOURS), ...Object.keys(GREYS)];

// The pixels of an Image, and for a scaled one its least and largest value. An error says why there are none.
export const pixels = ({ width, height, encoding, step, is_bigendian: isBig, data }) => {
  const colours = COLOURS[encoding];
  const read = GREYS[encoding];
  if (!colours && !read) throw new Error(`${encoding || 'no encoding'} is not shown; shown are ${ENCODINGS.join(', ')}`);
  if (!(width > 0 && height > 0 && width * height <= PIXELS_MAX)) throw new Error(`${width} × ${height} is no size that is shown`);
  const bytes = colours ? colours[0] : SIZES[read];
  const row = step || width * bytes;
  if (row < width * bytes || data.length < row * (height - 1) + width * bytes) {
    throw new Error(`${data.length} bytes in rows of ${row} are no ${width} × ${height} of ${encoding}`);
  }
  const image = new ImageData(width, height);
  if (colours) {
    paint(image.data, data, width, height, row, colours);
    return { image };
  }
  if (!SCALED.includes(encoding)) {
    paint(image.data, data, width, height, row, [1, 0, 0, 0]);
    return { image };
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const values = new Float32Array(width * height);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) values[at++] = view[read](y * row + x * bytes, !isBig);
  }
  const range = scale(values, image.data);
  return { image, range };
};

const paint = (out, data, width, height, row, [bytes, red, green, blue]) => {
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0, at = y * row; x < width; x++, at += bytes, to += 4) {
      out[to] = data[at + red];
      out[to + 1] = data[at + green];
      out[to + 2] = data[at + blue];
      out[to + 3] = 255;
    }
  }
};

// Greys from the least to the largest value; what is no number is black.
const scale = (values, out) => {
  let [low, high] = [Infinity, -Infinity];
  for (const it of values) {
    if (it < low && it > -Infinity) low = it;
    if (it > high && it < Infinity) high = it;
  }
  const by = high > low ? 255 / (high - low) : 0;
  for (let at = 0; at < values.length; at++) {
    const grey = Number.isFinite(values[at]) ? (values[at] - low) * by : 0;
    out[4 * at] = out[4 * at + 1] = out[4 * at + 2] = grey;
    out[4 * at + 3] = 255;
  }
  return low <= high ? [low, high] : undefined;
};
