// What there is: topics with their rates, flows with their transports, services. It is asked for while somebody looks, and only then.
import { PAST } from './spark.js';

const EVERY_MS = 1000;
const SELDOM_MS = 4000;
// Nothing is asked less often, and a second is a patient answer.
const STALE_MS = SELDOM_MS + 2000;
// For what engines take every process is asked once more, and it changes slowly: one of so many looks asks for it.
const LOOKS_PER_ENGINES = 3;

export class System {
  topics = [];
  flows = [];
  services = [];
  counters = {};
  // When these were asked for, and when they came.
  askedAt = 0;
  countersAt = 0;
  topicsLeftOut = 0;
  flowsLeftOut = 0;
  // The names of all messages that could be published.
  messages = [];
  // What more there is of routes, while they are looked at: what topics are set to and which may be set, and what engines take. What is
  // refused is there by the name of the service, with the reason.
  settings;
  engines;
  refused = new Map();
  wantsRoutes = false;
  // Whether it has been told of anything yet, and when it was last.
  isKnown = false;
  at = 0;
  #bridge;
  #isLive;
  #past = new Map();
  #listeners = new Set();
  #engineListeners = new Set();
  #timer;
  #isAsking = false;
  #isAskingEngines = false;
  // How many looks there were since what engines take was last asked for.
  #looksSinceEngines = LOOKS_PER_ENGINES;
  #details = new Map();

  // `isLive` says whether what is shown changes by the second.
  constructor(bridge, isLive) {
    this.#bridge = bridge;
    this.#isLive = isLive;
    document.addEventListener('visibilitychange', () => this.look());
    bridge.on('state', (state) => {
      if (state === 'connected') {
        // Another user may be told more.
        this.refused.clear();
        this.#looksSinceEngines = LOOKS_PER_ENGINES;
        this.#ask('/rosapi/interfaces', (it) => { this.messages = it.interfaces.filter((name) => name.includes('/msg/')); });
      }
      this.look();
    });
  }

  // Whether what is known is not of now.
  get isStale() {
    return this.isKnown && !document.hidden && (this.#bridge.state !== 'connected' || STALE_MS < Date.now() - this.at);
  }

  // Hears of everything new, once a look, but for what engines take.
  on(listener) {
    this.#listeners.add(listener);
  }

  // Hears of what engines take, which no look waits for.
  onEngines(listener) {
    this.#engineListeners.add(listener);
  }

  type(topic) {
    return this.topics.find((it) => it.name === topic)?.type;
  }

  // Looks now, and from then on again and again.
  async look() {
    clearTimeout(this.#timer);
    if (this.#isAsking || document.hidden || this.#bridge.state !== 'connected') return;
    this.#isAsking = true;
    const began = performance.now();
    const asked = [
      this.#ask('/rosapi/tsuji_routes', (it) => this.#take(it)),
      this.#ask('/rosapi/tsuji_bridge', (it) => { [this.counters, this.countersAt, this.askedAt] = [it, performance.now(), began]; }),
      this.#ask('/rosapi/services', (it) => { this.services = it.services; }),
    ];
    if (this.wantsRoutes) asked.push(this.#askMore('tsuji_route_settings', (it) => { this.settings = it && settingsOf(it); }));
    // After the others, which the bridge answers first.
    this.#askEngines();
    await Promise.all(asked);
    this.#isAsking = false;
    this.#listeners.forEach((it) => it());
    const every = this.#isLive() ? EVERY_MS : SELDOM_MS;
    this.#timer = setTimeout(() => this.look(), Math.max(100, every - (performance.now() - began)));
  }

  // What the messages of a type, or the requests of one, are made of.
  async definitions(type, service = 'message_details') {
    const key = `${service} ${type}`;
    if (!this.#details.has(key)) {
      const { typedefs } = await this.#bridge.call(`/rosapi/${service}`, { type });
      this.#details.set(key, typedefs);
    }
    return this.#details.get(key);
  }

  async #askEngines() {
    // Whoever comes back to the routes is not to wait.
    if (!this.wantsRoutes) this.#looksSinceEngines = LOOKS_PER_ENGINES;
    this.#looksSinceEngines += 1;
    if (!this.wantsRoutes || this.#isAskingEngines || this.#looksSinceEngines < LOOKS_PER_ENGINES) return;
    this.#looksSinceEngines = 0;
    this.#isAskingEngines = true;
    await this.#askMore('tsuji_engines', (it) => { this.engines = it && enginesOf(it); });
    this.#isAskingEngines = false;
    this.#engineListeners.forEach((it) => it());
  }

  async #ask(service, take) {
    try {
      take(await this.#bridge.call(service));
    } catch {
      // What is refused stays as it was; whoever wants to know has been told by the first call.
    }
  }

  // The same of what is not known when it is not told.
  async #askMore(service, take) {
    if (this.refused.has(service)) return;
    try {
      take(await this.#bridge.call(`/rosapi/${service}`));
    } catch (error) {
      take();
      // Whoever may not ask is not to be refused again and again. A connection that is lost refuses nothing.
      if (error.message.includes('may not')) this.refused.set(service, error.message);
    }
  }

  #take({ topics, routes, topics_left_out: topicsLeftOut, routes_left_out: flowsLeftOut }) {
    this.isKnown = true;
    this.at = Date.now();
    this.flows = routes;
    [this.topicsLeftOut, this.flowsLeftOut] = [topicsLeftOut, flowsLeftOut];
    const carried = this.#carried();
    const before = this.#past;
    this.#past = new Map();
    this.topics = topics.map(({ topic: name, type, publishers, subscriptions }) => {
      const { hz = 0, perSecond = 0 } = carried.get(name) ?? {};
      const past = [...(before.get(name) ?? []), hz].slice(-PAST);
      this.#past.set(name, past);
      return { name, type, publishers, subscriptions, hz, perSecond, past };
    });
  }

  // What each topic carries: of each publisher what its best served subscription gets.
  #carried() {
    const most = new Map();
    for (const { topic, role, publisher, rate_hz: hz, bytes_per_s: perSecond } of this.flows) {
      if (role !== 'topic') continue;
      const key = `${topic} ${publisher.gid}`;
      const known = most.get(key);
      if (!known || known.hz < hz) most.set(key, { topic, hz, perSecond });
    }
    const all = new Map();
    for (const { topic, hz, perSecond } of most.values()) {
      const it = all.get(topic) ?? { hz: 0, perSecond: 0 };
      all.set(topic, { hz: it.hz + hz, perSecond: it.perSecond + perSecond });
    }
    return all;
  }
}

const settingsOf = ({ transports, settings, may_set: maySet, unable }) => ({
  transports, unable, byTopic: new Map(settings.map((it) => [it.topic, it])), maySet: new Set(maySet),
});
const enginesOf = ({ processes, processes_left_out: leftOut, contexts_silent: silent }) => ({ processes, leftOut, silent });
