// Services, called.
import { complain, find, say } from './dom.js';
import { duration } from './format.js';
import { blank, parse, readable } from './message.js';

export class Call {
  #bridge;
  #system;
  // What was filled in; who has changed it keeps what he has.
  #filled = '';
  #isUnderWay = false;

  constructor({ bridge, system }) {
    this.#bridge = bridge;
    this.#system = system;
    find('call-service').addEventListener('change', () => this.#typed());
    find('call-type').addEventListener('change', () => this.#fill());
    find('call-fill').addEventListener('click', () => this.#fill(true));
    find('call-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#call();
    });
  }

  show() {}

  async #typed() {
    const service = find('call-service').value.trim();
    if (!service) return;
    try {
      const { type } = await this.#bridge.call('/rosapi/service_type', { service });
      if (find('call-service').value.trim() !== service) return;
      find('call-type').value = type;
      await this.#fill();
    } catch (error) {
      complain(find('call-wrong'), error.message);
    }
  }

  async #fill(isWanted = false) {
    const [type, area] = [find('call-type').value.trim(), find('call-request')];
    const isOwn = area.value.trim() !== '' && area.value !== this.#filled;
    if (!type || (isOwn && !isWanted)) return;
    try {
      const text = JSON.stringify(blank(await this.#system.definitions(type, 'service_request_details')), null, 2);
      if (find('call-type').value.trim() !== type) return;
      this.#filled = area.value = text;
      complain(find('call-wrong'));
    } catch (error) {
      complain(find('call-wrong'), error.message);
    }
  }

  async #call() {
    if (this.#isUnderWay) return;
    const [service, response] = [find('call-service').value.trim(), find('call-response')];
    const began = performance.now();
    this.#isUnderWay = true;
    complain(find('call-wrong'));
    response.hidden = true;
    say(find('call-done'), `Calling ${service}.`);
    try {
      const request = parse(find('call-request').value);
      const seconds = Math.max(0.1, Number(find('call-timeout').value) || 5);
      const values = await this.#bridge.call(service, request, seconds);
      say(find('call-done'), `${service} answered in ${duration((performance.now() - began) * 1000)}.`);
      say(response, readable(values));
      response.hidden = false;
    } catch (error) {
      say(find('call-done'), '');
      complain(find('call-wrong'), error.message);
    }
    this.#isUnderWay = false;
  }
}
