// A line of what a value was of late.
import { makeSvg } from './dom.js';

// How many values are kept and shown, one a look: a second, or as long as it takes until a process that does not answer is given up.
export const PAST = 60;

export class Spark {
  element = makeSvg('svg', { class: 'spark', viewBox: `0 0 ${PAST - 1} 20`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  #line = makeSvg('path', {});

  constructor() {
    this.element.append(this.#line);
  }

  // The newest value is the last. Where one is undefined the line has a gap.
  show(values) {
    const most = Math.max(0, ...values.filter((it) => it !== undefined));
    const from = PAST - values.length;
    const point = (value, at) => (value === undefined ? '' : `${values[at - 1] === undefined ? 'M' : 'L'}${from + at} ${(19 - (18 * value) / most).toFixed(1)}`);
    this.#line.setAttribute('d', most > 0 ? values.map(point).join('') : '');
  }
}
