// All topics with their rates, and one of them with its messages.
import { List, breakable, facts, find, make, say, toggle } from './dom.js';
import { many, rate, short, throughput } from './format.js';
import { readable } from './message.js';
import { isPicture } from './pixels.js';
import { Spark } from './spark.js';

// So often a message is shown at most, in milliseconds.
const EVERY_MS = 250;

export class Topics {
  #bridge;
  #system;
  #list;
  #isShown = false;
  // The topic that is looked at, and what ends hearing it.
  #chosen;
  #end;
  #opener;
  #keep;
  // The topic that the address has, until it is there.
  #awaited;
  #heard = 0;
  #message;
  #pause;

  constructor({ bridge, system, go, keep }) {
    this.#bridge = bridge;
    this.#keep = () => keep('topics', this.#chosen ? { topic: this.#chosen } : {});
    this.#system = system;
    this.#list = new List(find('topics-rows'), (topic) => this.#row(topic));
    this.#pause = toggle(find('topic-pause'), () => this.#listen());
    find('topics-filter').addEventListener('input', () => this.#show());
    find('topic-close').addEventListener('click', () => this.#close());
    find('topic').addEventListener('keydown', (event) => event.key === 'Escape' && this.#close());
    for (const to of ['picture', 'plot', 'publish']) find(`topic-${to}`).addEventListener('click', () => go(to, this.#chosen));
    system.on(() => this.#isShown && this.#show());
    setInterval(() => this.#isShown && this.#chosen && this.#tell(), EVERY_MS);
  }

  show(isShown) {
    this.#isShown = isShown;
    this.#listen();
    if (isShown) this.#show();
  }

  restore(state) {
    this.#awaited = state.get('topic');
    if (this.#isShown) this.#show();
  }

  #show() {
    const awaited = this.#system.topics.find((it) => it.name === this.#awaited);
    if (awaited) return this.#open(awaited);
    const wanted = find('topics-filter').value.trim().toLowerCase();
    const { topics, topicsLeftOut, isKnown } = this.#system;
    const shown = topics.filter((it) => `${it.name} ${it.type}`.toLowerCase().includes(wanted));
    this.#list.show(shown, (it) => `${it.name} ${it.type}`);
    const left = topicsLeftOut ? `, ${topicsLeftOut} more are left out` : '';
    say(find('topics-count'), isKnown ? `${shown.length} of ${many(topics.length, 'topic', 'topics')}${left}` : '');
    find('topics-none').hidden = shown.length > 0 || !isKnown;
    say(find('topics-none'), topics.length ? 'No topic has that in its name or type.'
      : 'No topics yet: nobody publishes or subscribes to anything.');
    const now = topics.find((it) => it.name === this.#chosen);
    if (now) this.#describe(now);
    return undefined;
  }

  #row(topic) {
    const name = make('button', { type: 'button', className: 'name', textContent: topic.name });
    name.addEventListener('click', () => this.#open(topic, name));
    const [hz, perSecond, ends] = [make('span'), make('small', { className: 'faint' }), make('td', { className: 'n' })];
    const spark = new Spark();
    const element = make('tr', {},
      make('th', { scope: 'row' }, name, make('small', { className: 'faint' }, ...breakable(topic.type))),
      make('td', { className: 'wide-only' }, spark.element), make('td', { className: 'n' }, hz, perSecond), ends);
    return {
      element,
      update: ({ name: of, hz: often, perSecond: much, publishers, subscriptions, past }) => {
        say(hz, rate(often));
        say(perSecond, often > 0 ? throughput(much) : '');
        say(ends, `${publishers} → ${subscriptions}`);
        ends.title = `${many(publishers, 'publisher', 'publishers')}, ${many(subscriptions, 'subscription', 'subscriptions')}`;
        spark.show(past);
        element.classList.toggle('chosen', of === this.#chosen);
      },
    };
  }

  // By its button, or since the address has it.
  #open({ name, type }, opener) {
    this.#awaited = undefined;
    this.#chosen = name;
    this.#keep();
    this.#opener = opener;
    this.#heard = 0;
    this.#message = undefined;
    say(find('topic-name'), name);
    say(find('topic-message'), '');
    find('topic-picture').hidden = !isPicture(type);
    find('topic').hidden = false;
    this.#pause.set(false);
    this.#show();
    if (!opener) return;
    find('topic-name').focus();
    find('topic').scrollIntoView({ block: 'nearest' });
  }

  #close() {
    this.#chosen = undefined;
    this.#keep();
    this.#listen();
    find('topic').hidden = true;
    this.#show();
    this.#opener?.focus();
  }

  #describe({ name, type, hz, perSecond, publishers, subscriptions }) {
    const nodes = (end) => [...new Set(this.#system.flows.filter((it) => it.topic === name && it.role === 'topic')
      .map((it) => it[end].node))].join(', ');
    const counted = (count, text) => (text ? `${count}: ${text}` : String(count));
    facts(find('topic-facts'), [
      ['Type', type],
      ['Rate', rate(hz)],
      ['Bytes', throughput(perSecond)],
      ['Publishers', counted(publishers, nodes('publisher'))],
      ['Subscriptions', counted(subscriptions, nodes('subscription'))],
    ]);
  }

  // Hears the topic while it is looked at.
  #listen() {
    this.#end?.();
    this.#end = undefined;
    if (!this.#isShown || !this.#chosen || this.#pause.isOn) return;
    const type = this.#system.type(this.#chosen);
    if (!type) return;
    this.#end = this.#bridge.subscribe({ name: this.#chosen, type, every: EVERY_MS }, (message) => {
      this.#heard += 1;
      this.#message = { message, at: performance.now() };
    }, (why) => say(find('topic-heard'), why));
  }

  #tell() {
    if (!this.#message) {
      const type = short(this.#system.type(this.#chosen) ?? '');
      if (!this.#pause.isOn) say(find('topic-heard'), `Waiting for a ${type}.`);
      return;
    }
    const { message, at } = this.#message;
    const ago = (performance.now() - at) / 1000;
    say(find('topic-heard'), `${ago < 1 ? 'just now' : `${ago.toFixed(0)} s ago`}, shown at most ${1000 / EVERY_MS} times a second`);
    // Who marks some of the text wants it to stay.
    const marked = getSelection();
    const isMarked = !marked.isCollapsed && find('topic-message').contains(marked.anchorNode);
    if (!isMarked) say(find('topic-message'), readable(message));
  }
}
