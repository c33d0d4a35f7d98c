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

export class Playback {
  #bridge;
  #told;
  #at = 0;
  #timer;
  // Whether somebody is choosing a time just now.
  #isChoosing = false;

  constructor({ bridge, system }) {
    this.#bridge = bridge;
    system.on(() => this.#take(system.counters.playback));
    find('playback-play').addEventListener('click', () => this.#set({ playing: this.#told.status !== 'playing' }));
    const time = find('playback-time');
    time.addEventListener('input', () => {
      this.#isChoosing = true;
      this.#show();
    });
    time.addEventListener('change', () => {
      this.#isChoosing = false;
      this.#set({ time: this.#told.start + Number(time.value) });
    });
    find('playback-rate').addEventListener('change', (event) => this.#set({ rate: Number(event.target.value) }));
    document.addEventListener('visibilitychange', () => this.#show());
  }

  #take(told) {
    this.#told = told;
    this.#at = performance.now();
    find('playback').hidden = !told;
    if (told) this.#show();
  }

  #show() {
    clearTimeout(this.#timer);
    if (!this.#told || document.hidden) return;
    const { status, start, end, rate } = this.#told;
    const time = find('playback-time');
    time.max = end - start;
    if (!this.#isChoosing) time.value = position(this.#told, (performance.now() - this.#at) / 1000) - start;
    const at = `${span(time.value)} of ${span(end - start)}`;
    say(find('playback-at'), at);
    time.setAttribute('aria-valuetext', at);
    say(find('playback-play'), status === 'playing' ? 'Pause' : 'Play');
    say(find('playback-status'), status);
    const rates = find('playback-rate');
    const all = [...new Set([...RATES, rate])].sort((a, b) => a - b);
    if (rates.options.length !== all.length || rates.value !== String(rate)) {
      rates.replaceChildren(...all.map((it) => new Option(`${it} ×`, String(it), false, it === rate)));
    }
    if (status === 'playing') this.#timer = setTimeout(() => this.#show(), EVERY_MS);
  }

  async #set(wish) {
    try {
      this.#take(await this.#bridge.call('/rosapi/tsuji_set_playback', wish));
      complain(find('playback-wrong'));
    } catch (error) {
      complain(find('playback-wrong'), error.message);
    }
  }
}
