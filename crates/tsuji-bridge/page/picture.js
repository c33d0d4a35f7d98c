// One topic of pictures, live.
import { facts, find, make, pick, say, toggle } from './dom.js';
import { bytes, duration, number, rate } from './format.js';
import { isPacked, isPicture, pixels } from './pixels.js';

const NONE = 'No topic carries pictures now. Shown are sensor_msgs/Image and sensor_msgs/CompressedImage.';

// The rate that is shown is that of so many pictures.
const COUNTED = 20;

export class Picture {
  #bridge;
  #system;
  #isShown = false;
  #wanted;
  #keep;
  #heard;
  #end;
  #pause;
  #canvas = find('picture-canvas');
  // When the last pictures came.
  #times = [];
  // The newest that is not drawn yet; others before it are left out.
  #next;
  #isDrawing = false;
  #last;

  constructor({ bridge, system, keep }) {
    this.#bridge = bridge;
    this.#system = system;
    this.#keep = () => keep('picture', { topic: this.#wanted ?? '', rate: find('picture-rate').value });
    this.#pause = toggle(find('picture-pause'), () => this.#listen());
    find('picture-topic').addEventListener('change', (event) => this.choose(event.target.value));
    find('picture-rate').addEventListener('change', () => {
      this.#keep();
      this.#listen(true);
    });
    system.on(() => this.#isShown && this.#offer());
    setInterval(() => this.#isShown && this.#describe(), 500);
  }

  show(isShown) {
    this.#isShown = isShown;
    if (isShown) this.#offer();
    this.#listen();
  }

  choose(topic) {
    this.#wanted = topic;
    this.#keep();
    this.#offer();
    this.#listen();
  }

  restore(state) {
    this.#wanted = state.get('topic') || this.#wanted;
    pick(find('picture-rate'), state.get('rate'));
    if (this.#isShown) this.#offer();
  }

  // The topics to choose from; the first is chosen where nobody has.
  #offer() {
    const select = find('picture-topic');
    const names = this.#system.topics.filter((it) => isPicture(it.type)).map((it) => it.name);
    if (this.#wanted && !names.includes(this.#wanted)) names.push(this.#wanted);
    if (names.join() !== [...select.options].map((it) => it.value).join()) {
      select.replaceChildren(...names.map((name) => make('option', { value: name, textContent: name })));
    }
    this.#wanted ??= names[0];
    if (this.#wanted) select.value = this.#wanted;
    select.disabled = names.length === 0;
    if (names.length === 0) this.#hint(NONE);
    else if (find('picture-none').textContent === NONE) this.#hint('');
    this.#listen();
  }

  #hint(text) {
    const none = find('picture-none');
    say(none, text);
    none.hidden = text === '';
    this.#canvas.hidden = text !== '';
  }

  // Hears the topic while it is shown. What is heard already is heard on, unless `anew`.
  #listen(anew = false) {
    const type = this.#isShown && !this.#pause.isOn && this.#wanted ? this.#system.type(this.#wanted) : undefined;
    const wanted = type && `${this.#wanted} ${type}`;
    if (wanted === this.#heard && !anew) return;
    this.#end?.();
    [this.#end, this.#heard] = [undefined, wanted];
    if (!wanted) return;
    this.#times = [];
    const every = 1000 / Number(find('picture-rate').value);
    const heard = (message) => this.#take(message, isPacked(type));
    this.#end = this.#bridge.subscribe({ name: this.#wanted, type, every }, heard, (why) => this.#hint(why));
  }

  #take(message, packed) {
    this.#times = [...this.#times, performance.now()].slice(-COUNTED);
    this.#next = { message, packed, topic: this.#wanted };
    if (!this.#isDrawing) this.#draw();
  }

  async #draw() {
    this.#isDrawing = true;
    while (this.#next) {
      const { message, packed, topic } = this.#next;
      this.#next = undefined;
      try {
        const shown = packed ? await this.#unpack(message) : this.#paint(message);
        this.#last = { message, topic, ...shown };
        this.#hint('');
        const label = `${topic}: ${shown.size}, ${shown.encoding}`;
        if (this.#canvas.getAttribute('aria-label') !== label) this.#canvas.setAttribute('aria-label', label);
      } catch (error) {
        this.#hint(error.message);
      }
    }
    this.#isDrawing = false;
    this.#describe();
  }

  #resize(width, height) {
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
  }

  #paint(message) {
    const { image, range } = pixels(message);
    this.#resize(image.width, image.height);
    this.#canvas.getContext('2d').putImageData(image, 0, 0);
    return { size: `${image.width} × ${image.height}`, encoding: message.encoding, range };
  }

  async #unpack({ format, data }) {
    const picture = await createImageBitmap(new Blob([data])).catch(() => {
      throw new Error(`${format || 'a picture without a format'} is nothing that this browser shows`);
    });
    const { width, height } = picture;
    this.#resize(width, height);
    this.#canvas.getContext('2d').drawImage(picture, 0, 0);
    picture.close();
    return { size: `${width} × ${height}`, encoding: format };
  }

  #describe() {
    if (!this.#last || this.#last.topic !== this.#wanted) {
      facts(find('picture-facts'), []);
      return;
    }
    const { message, size, encoding, range } = this.#last;
    const { sec, nanosec } = message.header.stamp;
    const age = Date.now() + this.#bridge.ahead - (sec * 1000 + nanosec / 1e6);
    const times = this.#times;
    const isStill = times.length < 2 || performance.now() - times.at(-1) > 3000;
    const topic = this.#system.topics.find((it) => it.name === this.#wanted);
    facts(find('picture-facts'), [
      ['Size', size],
      ['Encoding', encoding],
      ['Bytes', bytes(message.data.length)],
      ['Values', range && `${number(range[0])} to ${number(range[1])}`],
      ['Shown', rate(isStill ? 0 : (1000 * (times.length - 1)) / (times.at(-1) - times[0]))],
      ['Published', topic && rate(topic.hz)],
      ['Age', sec || nanosec ? duration(Math.max(0, age) * 1000) : 'no stamp'],
    ]);
  }
}
