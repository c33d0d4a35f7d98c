// The connection to the bridge, by roslib. It comes back by itself, says who the user is, and hands on what was refused.
import { Ros, Service, Topic, WebSocketTransportFactory } from './vendor/roslib.js';

// How long to wait before the connection is tried again, in milliseconds; the last for ever.
const PATIENCE = [500, 1000, 2000, 5000];

// How late what was refused may be said, in milliseconds.
const LATE = 5000;

class Client extends Ros {
  // roslib does not tell by which id a call goes; by that the bridge says that it refuses it.
  callOnConnection(message) {
    this.said = message;
    super.callOnConnection(message);
  }
}

export class Bridge {
  // connecting, connected, token (one is asked for) or closed.
  state = 'connecting';
  // What the clock of the bridge is ahead of that of this browser, in milliseconds.
  ahead = 0;
  #url;
  #token;
  #ros;
  #tries = 0;
  #timer;
  // Whether the bridge has said that the token is nobody's.
  #isWrong = false;
  #listeners = { state: new Set(), status: new Set(), problem: new Set() };

  constructor(url, token) {
    this.#url = url;
    this.#token = token;
    this.#ros = new Client({ transportFactory: (to) => this.#transport(to) });
    // The first to hear of a connection, so that the token goes before whatever waits for it.
    this.#ros.on('connection', () => this.#opened());
    this.#ros.on('close', () => this.#closed());
    this.#ros.on('error', (error) => {
      if (error instanceof Error) this.#tell('problem', error.message);
    });
  }

  // Hears of `state`, `status` or `problem`; what is returned ends that. Who takes a status as his own answers true.
  on(what, listener) {
    this.#listeners[what].add(listener);
    return () => this.#listeners[what].delete(listener);
  }

  connect() {
    clearTimeout(this.#timer);
    this.#enter('connecting');
    this.#ros.connect(this.#url).catch((error) => this.#tell('problem', String(error)));
  }

  // Begins anew as the user of that token.
  authenticate(token) {
    this.#token = token;
    this.#tries = 0;
    this.#ros.close();
  }

  // Calls a service, and gives what it answers.
  async call(name, request = {}, seconds = 5) {
    if (!this.#ros.isConnected) throw new Error('not connected');
    const service = new Service({ ros: this.#ros, name, serviceType: '' });
    const answer = new Promise((done, failed) => {
      service.callService(request, done, (why) => failed(new Error(why)), seconds);
    });
    const { id } = this.#ros.said;
    const ends = [];
    const trouble = new Promise((_, failed) => {
      ends.push(this.on('status', (status) => status.id === id && (failed(new Error(status.msg)), true)));
      ends.push(this.on('state', (state) => state === 'closed' && failed(new Error('the connection was lost'))));
      // The bridge says so itself, if it can.
      const watchdog = setTimeout(() => failed(new Error(`${name}: no answer in ${seconds} s`)), seconds * 1000 + 2000);
      ends.push(() => clearTimeout(watchdog));
    });
    try {
      return await Promise.race([answer, trouble]);
    } finally {
      ends.forEach((end) => end());
      this.#ros.removeAllListeners(id);
    }
  }

  // Hears what a topic carries, of which so many messages may wait; what is returned ends it. They come as CBOR, so that arrays of
  // numbers are such.
  subscribe({ name, type, every, queue = 1 }, heard, refused) {
    const topic = new Topic({
      ros: this.#ros, name, messageType: type, compression: 'cbor', throttle_rate: every, queue_length: queue,
    });
    topic.subscribe(heard);
    const id = topic.subscribeId;
    const end = this.#hear((it) => it === id, refused);
    return () => {
      topic.unsubscribe(heard);
      end();
    };
  }

  // A topic to publish on. What of it is refused is handed to `refused`.
  advertise(name, type, refused) {
    const topic = new Topic({ ros: this.#ros, name, messageType: type });
    const is = (id) => id.startsWith(`publish:${name}:`) || id.startsWith(`advertise:${name}:`);
    const end = this.#hear(is, refused);
    topic.advertise();
    return {
      name,
      type,
      publish: (message) => topic.publish(message),
      end: () => {
        topic.unadvertise();
        end();
      },
    };
  }

  // Hears what of the messages with such ids is refused; what is returned ends that. What is refused just then nobody needs to hear.
  #hear(is, refused) {
    let isOver = false;
    const end = this.on('status', ({ id, msg }) => {
      const isOne = typeof id === 'string' && is(id);
      if (isOne && !isOver) refused(msg);
      return isOne;
    });
    return () => {
      isOver = true;
      setTimeout(end, LATE);
    };
  }

  async #transport(url) {
    const transport = await WebSocketTransportFactory(url);
    transport.on('message', (message) => {
      if (message.op === 'status') this.#refused(message);
    });
    return transport;
  }

  #refused(status) {
    if (status.id === 'auth' && status.level === 'error') this.#isWrong = true;
    const isTaken = [...this.#listeners.status].map((it) => it(status)).some(Boolean);
    if (!isTaken && status.level === 'error' && status.id !== 'auth') this.#tell('problem', status.msg);
  }

  async #opened() {
    this.#isWrong = false;
    if (this.#token) this.#ros.callOnConnection({ op: 'auth', id: 'auth', token: this.#token });
    const asked = Date.now();
    try {
      const { time } = await this.call('/rosapi/get_time');
      this.ahead = time.sec * 1000 + time.nanosec / 1e6 - (asked + Date.now()) / 2;
    } catch (error) {
      if (!this.#ros.isConnected) return;
      if (error.message.includes('not authenticated')) {
        this.#enter('token', this.#isWrong);
        return;
      }
      this.#tell('problem', error.message);
    }
    if (this.#isWrong) this.#tell('problem', 'Wrong token: the bridge takes this page for somebody without one.');
    this.#tries = 0;
    this.#enter('connected');
  }

  #closed() {
    const wait = PATIENCE[Math.min(this.#tries, PATIENCE.length - 1)];
    this.#tries += 1;
    this.#enter('closed', wait);
    this.#timer = setTimeout(() => this.connect(), wait);
  }

  #enter(state, more) {
    this.state = state;
    this.#listeners.state.forEach((it) => it(state, more));
  }

  #tell(what, more) {
    this.#listeners[what].forEach((it) => it(more));
  }
}
