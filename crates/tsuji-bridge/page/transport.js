// The name of a transport, with its colour.
import { make, say } from './dom.js';

const COLOURS = { shm: 'c0', inproc: 'c2', cyclonedds: 'c1', fastdds: 'c3', zenoh: 'c4' };

export const paint = (element, transport) => {
  element.style.setProperty('--colour', `var(--${COLOURS[transport] ?? 'c6'})`);
};

export class Badge {
  element = make('span', { className: 'transport' });

  // Of none the text says why, or how.
  show(transport, text = transport, isNone = false) {
    say(this.element, text);
    this.element.classList.toggle('none', isNone);
    paint(this.element, transport);
  }
}
