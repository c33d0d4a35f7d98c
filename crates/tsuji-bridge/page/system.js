// What there is: topics with their rates, flows with their transports, services. It is asked for while somebody looks, and only then.

// How many values of each topic's rate are kept, one a second.
const PAST = 60;
const EVERY_MS = 1000;
const SELDOM_MS = 4000;
// Nothing is asked less often, and a second is a patient answer.
const STALE_MS = SELDOM_MS + 2000;

export class System {
  topics = [];
  flows = [];
  services = [];
  counters = {};
  topicsLeftOut = 0;
  flowsLeftOut = 0;
  // The names of all messages that could be published.
  messages = [];
  // What topics are set to and which may be set, while somebody wants to know; and why that is not told.
  settings;
  settingsRefused;
  wantsSettings = false;
  // Whether it has been told of anything yet, and when it was last.
  isKnown = false;
  at = 0;
  #bridge;
  #isLive;
  #past = new Map();
  #listeners = new Set();
  #timer;
  #isAsking = false;
  #details = new Map();

  // `isLive` says whether what is shown changes by the second.
  constructor(bridge, isLive) {
    this.#bridge = bridge;
    this.#isLive = isLive;
    document.addEventListener('visibilitychange', () => this.look());
    bridge.on('state', (state) => {
      // Another user may be told more.
      if (state === 'connected') this.settingsRefused = undefined;
      if (state === 'connected') this.#ask('/rosapi/interfaces', (it) => {
        this.messages = it.interfaces.filter((name) => name.includes('/msg/'));
      });
      this.look();
    });
  }

  // Whether what is known is not of now.
  get isStale() {
    return this.isKnown && !document.hidden && (this.#bridge.state !== 'connected' || STALE_MS < Date.now() - this.at);
  }

  // Hears of everything new.
  on(listener) {
    this.#listeners.add(listener);
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
      this.#ask('/rosapi/tsuji_bridge', (it) => { this.counters = it; }),
      this.#ask('/rosapi/services', (it) => { this.services = it.services; }),
    ];
    if (this.wantsSettings && !this.settingsRefused) asked.push(this.#askSettings());
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

  async #ask(service, take) {
    try {
      take(await this.#bridge.call(service));
    } catch {
      // What is refused stays as it was; whoever wants to know has been told by the first call.
    }
  }

  async #askSettings() {
    try {
      const { transports, settings, may_set: maySet } = await this.#bridge.call('/rosapi/tsuji_route_settings');
      this.settings = { transports, byTopic: new Map(settings.map((it) => [it.topic, it])), maySet: new Set(maySet) };
    } catch (error) {
      // Whoever may not ask is not to be refused again and again. A connection that is lost refuses nothing.
      this.settings = undefined;
      if (error.message.includes('may not')) this.settingsRefused = error.message;
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
