// Numbers of messages over time.
import { DASHES, draw, since } from './chart.js';
import { List, find, make, offer, pick, say, toggle } from './dom.js';
import { many, number } from './format.js';
import { numbers, parts, valueAt } from './message.js';

// Of each topic a message is drawn so often at most, in milliseconds.
const EVERY_MS = 10;
// What comes while the browser is busy waits, since a line without it would be another.
const QUEUE = 100;
const LINES_MAX = 6;
// Values of a line that are kept. Of more the oldest go.
const VALUES_MAX = 20_000;
const COLOURS = 6;

const seconds = () => performance.now() / 1000;

export class Plot {
  #bridge;
  #system;
  #isShown = false;
  #lines = [];
  #keep;
  // Lines that the address has, until their topics are there.
  #awaited = [];
  #list;
  #pause;
  #frozen;
  #next = 0;
  #stays = matchMedia('(prefers-reduced-motion: reduce)');
  #drawing;
  #waiting;

  constructor({ bridge, system, keep }) {
    this.#bridge = bridge;
    this.#system = system;
    this.#keep = () => keep('plot', [
      ...this.#lines.map((it) => ['line', `${it.topic}:${it.field}`]), ...this.#awaited.map((it) => ['line', it]), ['window', this.#span()],
    ]);
    system.on(() => this.#restoreLines());
    this.#list = new List(find('plot-lines'), (line) => this.#row(line));
    this.#pause = toggle(find('plot-pause'), (isOn) => {
      this.#frozen = isOn ? seconds() : undefined;
      this.#schedule();
    });
    find('plot-topic').addEventListener('change', () => this.#offer());
    find('plot-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#add(find('plot-topic').value.trim(), find('plot-field').value.trim());
    });
    find('plot-form').addEventListener('input', ({ target }) => {
      target.setAttribute('aria-invalid', 'false');
      this.#hint('');
    });
    find('plot-window').addEventListener('change', () => {
      this.#keep();
      this.#paint();
    });
    new ResizeObserver(() => this.#isShown && this.#paint()).observe(find('plot-canvas'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#paint());
    setInterval(() => this.#isShown && this.#summarize(), 500);
  }

  show(isShown) {
    this.#isShown = isShown;
    this.#lines.forEach((line) => this.#listen(line));
    this.#schedule();
    if (isShown) this.#summarize();
  }

  restore(state) {
    pick(find('plot-window'), state.get('window'));
    this.#awaited = state.getAll('line').filter((line) => !this.#lines.some((it) => `${it.topic}:${it.field}` === line));
    this.#restoreLines();
  }

  // What is awaited and not there yet stays awaited.
  #restoreLines() {
    const awaited = this.#awaited;
    // No name of a topic has a colon.
    const isThere = (it) => this.#system.type(it.split(':', 1)[0]);
    this.#awaited = awaited.filter((it) => !isThere(it));
    for (const it of awaited.filter(isThere)) {
      const [topic] = it.split(':', 1);
      this.#add(topic, it.slice(topic.length + 1));
    }
  }

  async choose(topic) {
    find('plot-topic').value = topic;
    await this.#offer();
    find('plot-field').focus();
  }

  // The numbers of the topic to choose from.
  async #offer() {
    const topic = find('plot-topic').value.trim();
    const type = this.#system.type(topic);
    const fields = type ? await this.#system.definitions(type).then(numbers).catch(() => []) : [];
    offer(find('plot-fields'), fields);
    const field = find('plot-field');
    // Who types there already knows what he wants.
    const isFree = document.activeElement !== field && !fields.includes(field.value);
    if (fields.length && isFree) field.value = fields[0];
    this.#hint(type && !fields.length ? `${type} has no numbers` : '');
  }

  #hint(text, isWrong = false) {
    say(find('plot-hint'), text);
    find('plot-hint').classList.toggle('problem', isWrong);
  }

  #add(topic, field) {
    const path = parts(field);
    find('plot-field').setAttribute('aria-invalid', String(!path));
    const type = this.#system.type(topic);
    find('plot-topic').setAttribute('aria-invalid', String(!type));
    if (!type) return this.#hint(`nobody publishes or subscribes to ${topic || 'nothing'}`, true);
    if (!path) return this.#hint('a field is such as linear.x or ranges[0]', true);
    if (this.#lines.some((it) => it.topic === topic && it.field === field)) return this.#hint('that line is there', true);
    if (LINES_MAX <= this.#lines.length) return this.#hint(`${LINES_MAX} lines at most`, true);
    this.#hint('');
    const key = this.#next++;
    const [colour, dash] = [`--c${key % COLOURS}`, DASHES[Math.floor(key / COLOURS) % DASHES.length]];
    const line = { key, topic, type, field, path, colour, dash, times: [], values: [], missing: 0 };
    this.#lines.push(line);
    this.#keep();
    this.#listen(line);
    this.#summarize();
    this.#schedule();
    return undefined;
  }

  #remove(line) {
    line.end?.();
    this.#lines = this.#lines.filter((it) => it !== line);
    this.#keep();
    this.#summarize();
    this.#paint();
    find('plot-field').focus();
  }

  #listen(line) {
    line.end?.();
    line.end = undefined;
    if (!this.#isShown) return;
    const { topic: name, type } = line;
    line.end = this.#bridge.subscribe({ name, type, every: EVERY_MS, queue: QUEUE }, (message) => {
      const value = valueAt(message, line.path);
      if (Number.isNaN(value)) {
        line.missing += 1;
        return;
      }
      line.times.push(seconds());
      line.values.push(value);
      if (VALUES_MAX < line.times.length) {
        line.times.splice(0, VALUES_MAX / 10);
        line.values.splice(0, VALUES_MAX / 10);
      }
    }, (why) => this.#hint(why, true));
  }

  // Draws at each frame, or once a second for whoever wants things to stand still.
  #schedule() {
    cancelAnimationFrame(this.#drawing);
    clearTimeout(this.#waiting);
    this.#paint();
    if (!this.#isShown || this.#frozen !== undefined || this.#lines.length === 0) return;
    const again = () => { this.#drawing = requestAnimationFrame(() => this.#schedule()); };
    if (this.#stays.matches) this.#waiting = setTimeout(again, 1000); else again();
  }

  #span() {
    return Number(find('plot-window').value);
  }

  #now() {
    return this.#frozen ?? seconds();
  }

  #paint() {
    if (this.#isShown) draw(find('plot-canvas'), this.#lines, this.#now(), this.#span());
  }

  #row(line) {
    const name = `${line.topic} ${line.field}`;
    const key = make('span', { className: line.dash.length ? 'key dashed' : 'key' });
    key.style.setProperty('--colour', `var(${line.colour})`);
    const cells = [0, 1, 2, 3].map(() => make('td', { className: 'n' }));
    const remove = make('button', { type: 'button', textContent: '✕', 'aria-label': `Remove ${name}` });
    remove.addEventListener('click', () => this.#remove(line));
    const element = make('tr', {}, make('th', { scope: 'row' }, key, `${line.topic} `, make('wbr'), line.field), ...cells, make('td', { className: 'n' }, remove));
    return {
      element,
      update: (it) => {
        const values = it.values.slice(since(it.times, this.#now() - this.#span()));
        const sum = values.reduce((all, value) => all + value, 0);
        const least = values.reduce((a, b) => Math.min(a, b), Infinity);
        const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
        const shown = values.length ? [values.at(-1), least, most, sum / values.length].map((value) => number(value, 4)) : ['–', '–', '–', '–'];
        shown.forEach((text, at) => say(cells[at], text));
      },
    };
  }

  #summarize() {
    this.#list.show(this.#lines, (it) => it.key);
    find('plot-summary').hidden = this.#lines.length === 0;
    find('plot-none').hidden = this.#lines.length > 0;
    const names = this.#lines.map((it) => `${it.topic} ${it.field}`).join(', ');
    const label = names ? `${names} over the last ${this.#span()} seconds` : 'No line yet';
    if (find('plot-canvas').getAttribute('aria-label') !== label) find('plot-canvas').setAttribute('aria-label', label);
    const missing = this.#lines.find((it) => it.missing > 0 && it.values.length === 0);
    if (missing) this.#hint(`${missing.field} is no number in ${many(missing.missing, 'message', 'messages')} of ${missing.topic}`, true);
  }
}
