// Tabs as WAI-ARIA describes them: arrows, Home and End move between them, and what is behind one is shown at once.
import { arrows, find } from './dom.js';

export class Tabs {
  // The name of the tab that is chosen.
  chosen;
  #tabs;
  #changed;

  constructor(list, changed) {
    this.#changed = changed;
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
    // A reload, or whoever is sent the address, comes back here.
    history.replaceState(null, '', `#${name}`);
    this.#changed(name);
  }

  #name(tab) {
    return tab.getAttribute('aria-controls');
  }

  #follow() {
    const wanted = location.hash.slice(1);
    const isOne = this.#tabs.some((tab) => this.#name(tab) === wanted);
    if (isOne || this.chosen === undefined) this.choose(isOne ? wanted : this.#name(this.#tabs[0]));
  }
}
