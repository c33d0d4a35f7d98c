// Elements. What comes from elsewhere is set as text, never as markup.

export const find = (id) => document.getElementById(id);

// An element with these properties or, where a name has a dash, attributes, and these children.
export const make = (name, properties = {}, ...children) => {
  const it = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in it && !key.includes('-')) it[key] = value; else it.setAttribute(key, value);
  }
  it.append(...children);
  return it;
};

const SVG = 'http://www.w3.org/2000/svg';
export const makeSvg = (name, attributes) => {
  const it = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) it.setAttribute(key, value);
  return it;
};

// A name that may be broken behind its slashes.
export const breakable = (name) => name.split(/(?<=\/)/).flatMap((part) => [part, make('wbr')]);

// Sets a text only where it is another, so that nothing is announced or selected anew.
export const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

// The same for something that may be absent.
export const complain = (element, text) => {
  say(element, text || '');
  element.hidden = !text;
};

// Shows a list: an element for each item by its key, kept while the item is there, so that whoever uses one is not disturbed.
// `begin` makes { element, update(item) }.
export class List {
  #parent;
  #begin;
  #all = new Map();

  constructor(parent, begin) {
    this.#parent = parent;
    this.#begin = begin;
  }

  show(items, keyOf) {
    const before = this.#all;
    this.#all = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const it = before.get(key) ?? this.#begin(item);
      before.delete(key);
      it.update(item);
      this.#all.set(key, it);
    }
    before.forEach((it) => it.element.remove());
    let next = this.#parent.firstElementChild;
    // What stands before the list, such as the head of a table, stays there.
    while (next && ['CAPTION', 'THEAD'].includes(next.tagName)) next = next.nextElementSibling;
    for (const { element } of this.#all.values()) {
      if (element === next) next = next.nextElementSibling;
      else this.#parent.insertBefore(element, next);
    }
  }
}

// Has arrows, Home and End move between what `items` tells, as WAI-ARIA describes it for tabs and toolbars.
export const arrows = (list, items, go) => list.addEventListener('keydown', (event) => {
  const all = items();
  const [at, last] = [all.indexOf(event.target), all.length - 1];
  const to = { ArrowRight: at < last ? at + 1 : 0, ArrowLeft: at > 0 ? at - 1 : last, Home: 0, End: last }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  go(all[to]);
});

// Chooses a value, if it is one of those to choose from.
export const pick = (select, value) => {
  if ([...select.options].some((it) => it.value === value)) select.value = value;
};

// The choices that a field with a list offers.
export const offer = (list, values) => {
  const wanted = [...values];
  const there = [...list.children].map((it) => it.value);
  if (wanted.length === there.length && wanted.every((it, at) => it === there[at])) return;
  list.replaceChildren(...wanted.map((value) => make('option', { value })));
};

// Facts as names and values.
export const facts = (list, pairs) => {
  const wanted = pairs.filter(([, value]) => value !== undefined && value !== '');
  if (list.children.length !== wanted.length) {
    list.replaceChildren(...wanted.map(() => make('div', {}, make('dt'), make('dd'))));
  }
  wanted.forEach(([name, value], at) => {
    const [title, text] = list.children[at].children;
    say(title, name);
    say(text, value);
  });
};

// A button that is pressed or not.
export const toggle = (button, changed) => {
  const set = (isOn) => {
    button.setAttribute('aria-pressed', String(isOn));
    changed(isOn);
  };
  button.addEventListener('click', () => set(button.getAttribute('aria-pressed') !== 'true'));
  return { set, get isOn() { return button.getAttribute('aria-pressed') === 'true'; } };
};
