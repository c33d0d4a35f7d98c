// The recording that is played, if one is: how far it is, and what may be done about it.
import { complain, find, say } from './dom.js';

const RATES = [0.1, 0.25, 0.5, 1, 2, 5, 10];
const EVERY_MS = 200;

// Seconds as minutes and seconds.
export const span = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
};

// Where it is by now, of what was told `past` seconds ago.
export const position = ({ status, time, start, end, rate }, past) => {
  const now = status === 'playing' ? time + rate * past : time;
  return Math.min(Math.max(now, start), end);
};

// Whether it goes on by itself, though it may be on its way to another time.
const goesOn = ({ status }) => status === 'playing' || status === 'waiting';

export class Playback {
  #bridge;
  #system;
  #told;
  // When that was.
  #at = 0;
  #timer;
  // Whether somebody is choosing a time just now.
  #isChoosing = false;

  constructor({ bridge, system }) {
    this.#bridge = bridge;
    this.#system = system;
    // What was asked before the last answer is older than that, whenever it comes.
    system.on(() => this.#at <= system.askedAt && this.#take(system.counters.playback, system.countersAt));
    find('playback-play').addEventListener('click', () => this.#set({ playing: !goesOn(this.#told) }));
    const time = find('playback-time');
    time.addEventListener('input', () => {
      this.#isChoosing = true;
      this.#show();
    });
    time.addEventListener('change', () => {
      this.#isChoosing = false;
      this.#set({ time: this.#told.start + Number(time.value) });
    });
    // Whoever comes back to where it was has changed nothing, and is not told of.
    for (const end of ['pointerup', 'pointercancel', 'blur']) {
      time.addEventListener(end, () => {
        this.#isChoosing = false;
      });
    }
    find('playback-rate').addEventListener('change', (event) => this.#set({ rate: Number(event.target.value) }));
    document.addEventListener('visibilitychange', () => this.#show());
  }

  #take(told, at) {
    this.#told = told;
    this.#at = at;
    find('playback').hidden = !told;
    if (told) this.#show();
  }

  #show() {
    clearTimeout(this.#timer);
    if (!this.#told || document.hidden) return;
    const { status, start, end, rate, trouble, may_set: maySet } = this.#told;
    const time = find('playback-time');
    // Nobody knows where it is by now that the bridge tells nothing.
    if (!this.#system.isStale) {
      time.max = end - start;
      if (!this.#isChoosing) time.value = position(this.#told, (performance.now() - this.#at) / 1000) - start;
    }
    const at = `${span(time.value)} of ${span(end - start)}`;
    say(find('playback-at'), at);
    time.setAttribute('aria-valuetext', at);
    say(find('playback-play'), goesOn(this.#told) ? 'Pause' : 'Play');
    say(find('playback-status'), maySet ? status : `${status}; not yours to control`);
    const rates = find('playback-rate');
    const all = [...new Set([...RATES, rate])].sort((a, b) => a - b);
    if (rates.options.length !== all.length || rates.value !== String(rate)) {
      rates.replaceChildren(...all.map((it) => new Option(`${it} ×`, String(it), false, it === rate)));
    }
    for (const it of [time, rates, find('playback-play')]) it.disabled = !maySet || Boolean(trouble);
    if (trouble) complain(find('playback-wrong'), trouble);
    // One on its way to another time is asked for; it arrives soon.
    if (status === 'waiting') this.#timer = setTimeout(() => this.#ask('tsuji_playback', {}), EVERY_MS);
    else if (status === 'playing') this.#timer = setTimeout(() => this.#show(), EVERY_MS);
  }

  async #set(wish) {
    complain(find('playback-wrong'));
    await this.#ask('tsuji_set_playback', wish);
  }

  async #ask(service, args) {
    try {
      const told = await this.#bridge.call(`/rosapi/${service}`, args);
      this.#take(told, performance.now());
    } catch (error) {
      complain(find('playback-wrong'), error.message);
    }
  }
}
