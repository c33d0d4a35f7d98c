// Messages that the user writes.
import { complain, find, say } from './dom.js';
import { many } from './format.js';
import { blank, parse } from './message.js';

export class Publish {
  #bridge;
  #system;
  // Whether it is published again and again.
  #goesOn = false;
  #timer;
  #publisher;
  #count = 0;
  // What was filled in; who has changed it keeps what he has.
  #filled = '';

  constructor({ bridge, system }) {
    this.#bridge = bridge;
    this.#system = system;
    find('publish-topic').addEventListener('change', () => this.#typed());
    find('publish-type').addEventListener('change', () => this.#fill());
    find('publish-fill').addEventListener('click', () => this.#fill(true));
    find('publish-rate').addEventListener('change', () => this.#goesOn && this.#repeat());
    find('publish-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#once();
    });
    find('publish-again').addEventListener('click', () => (this.#goesOn ? this.#rest() : this.#repeat()));
    bridge.on('state', (state) => state === 'closed' && this.#goesOn && this.#stop('the connection was lost'));
  }

  show() {}

  async choose(topic) {
    find('publish-topic').value = topic;
    await this.#typed();
    find('publish-message').focus();
  }

  async #typed() {
    const known = this.#system.type(find('publish-topic').value.trim());
    if (known) find('publish-type').value = known;
    await this.#fill();
  }

  async #fill(isWanted = false) {
    const [type, area] = [find('publish-type').value.trim(), find('publish-message')];
    const isOwn = area.value.trim() !== '' && area.value !== this.#filled;
    if (!type || (isOwn && !isWanted)) return;
    try {
      const text = JSON.stringify(blank(await this.#system.definitions(type)), null, 2);
      if (find('publish-type').value.trim() !== type) return;
      this.#filled = area.value = text;
      this.#complain();
    } catch (error) {
      this.#complain(error.message);
    }
  }

  // What is to be published: nothing where it is none yet.
  #message() {
    if (this.#bridge.state !== 'connected') throw new Error('not connected');
    const [name, type] = [find('publish-topic').value.trim(), find('publish-type').value.trim()];
    if (!name || !type) throw new Error('a topic and its type are needed');
    const message = parse(find('publish-message').value);
    if (this.#publisher?.name !== name || this.#publisher?.type !== type) {
      this.#publisher?.end();
      this.#count = 0;
      this.#publisher = this.#bridge.advertise(name, type, (why) => this.#stop(why));
    }
    return message;
  }

  async #once() {
    try {
      const message = this.#message();
      this.#complain();
      say(find('publish-done'), '');
      this.#publisher.publish(message);
      this.#count += 1;
      // What is refused has been said when the answer comes.
      await this.#bridge.call('/rosapi/get_time').catch(() => {});
      if (find('publish-wrong').hidden) say(find('publish-done'), this.#told());
    } catch (error) {
      this.#complain(error.message);
    }
  }

  #told() {
    return `Published ${many(this.#count, 'message', 'messages')} on ${this.#publisher.name}.`;
  }

  #repeat() {
    clearInterval(this.#timer);
    try {
      const message = this.#message();
      const rate = Math.min(100, Math.max(0.1, Number(find('publish-rate').value) || 1));
      this.#complain();
      const publish = () => {
        this.#publisher.publish(message);
        this.#count += 1;
        say(find('publish-count'), this.#told());
      };
      publish();
      this.#timer = setInterval(publish, 1000 / rate);
      this.#mark(true);
      say(find('publish-done'), `Publishing on ${this.#publisher.name}, ${rate} times a second.`);
    } catch (error) {
      this.#stop(error.message);
    }
  }

  #rest() {
    clearInterval(this.#timer);
    this.#mark(false);
    say(find('publish-count'), '');
    if (this.#publisher && this.#count) say(find('publish-done'), this.#told());
  }

  #stop(why) {
    this.#rest();
    this.#publisher?.end();
    this.#publisher = undefined;
    say(find('publish-done'), '');
    this.#complain(why);
  }

  // That it goes on is seen from the other tabs.
  #mark(isOn) {
    this.#goesOn = isOn;
    say(find('publish-again'), isOn ? 'Stop publishing' : 'Publish again and again');
    say(find('tab-publish'), isOn ? 'Publish ●' : 'Publish');
  }

  #complain(why) {
    complain(find('publish-wrong'), why);
    find('publish-message').setAttribute('aria-invalid', String(Boolean(why)));
  }
}
