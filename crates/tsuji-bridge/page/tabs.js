// Tabs as WAI-ARIA describes them: arrows, Home and End move between them, and what is behind one is shown at once. The address has the
// one that is chosen with what it shows, so that a reload, or whoever is sent it, comes back to that.
import { arrows, find } from './dom.js';

export class Tabs {
  // The name of the tab that is chosen.
  chosen;
  #tabs;
  #changed;
  #restore;
  // What each shows, as the address has it.
  #kept = new Map();

  // `restore` is told what an address has of one, before it is shown.
  constructor(list, changed, restore) {
    this.#changed = changed;
    this.#restore = restore;
    this.#tabs = [...list.querySelectorAll('[role=tab]')];
    this.#tabs.forEach((tab) => tab.addEventListener('click', () => this.choose(this.#name(tab))));
    arrows(list, () => this.#tabs, (tab) => {
      this.choose(this.#name(tab));
      tab.focus();
    });
    addEventListener('hashchange', () => this.#follow());
    this.#follow();
  }

  choose(name) {
    if (name === this.chosen) return;
    this.chosen = name;
    for (const tab of this.#tabs) {
      const isChosen = this.#name(tab) === name;
      tab.setAttribute('aria-selected', String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      find(this.#name(tab)).hidden = !isChosen;
    }
    this.#tell();
    this.#changed(name);
  }

  // Keeps what one shows in the address.
  keep(name, state) {
    this.#kept.set(name, String(new URLSearchParams(state)));
    if (name === this.chosen) this.#tell();
  }

  #tell() {
    const state = this.#kept.get(this.chosen);
    history.replaceState(null, '', `#${this.chosen}${state ? `?${state}` : ''}`);
  }

  #name(tab) {
    return tab.getAttribute('aria-controls');
  }

  #follow() {
    const [wanted, state] = location.hash.slice(1).split('?', 2);
    const isOne = this.#tabs.some((tab) => this.#name(tab) === wanted);
    if (isOne && state) {
      this.#kept.set(wanted, state);
      this.#restore(wanted, new URLSearchParams(state));
    }
    if (isOne || this.chosen === undefined) this.choose(isOne ? wanted : this.#name(this.#tabs[0]));
  }
}
