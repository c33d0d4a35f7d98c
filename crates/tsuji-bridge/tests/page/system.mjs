// What the page asks the bridge for while its routes are looked at, and what it waits for. Called with the folder of the page.
import assert from 'node:assert/strict';

globalThis.document = { hidden: false, addEventListener() {} };
const { System } = await import(`${process.argv[2]}/system.js`);

const ANSWERS = {
  '/rosapi/tsuji_routes': { topics: [], routes: [], topics_left_out: 0, routes_left_out: 0 },
  '/rosapi/tsuji_bridge': {},
  '/rosapi/services': { services: [] },
  '/rosapi/tsuji_route_settings': { transports: [], settings: [], may_set: [], unable: {} },
};
const ENGINES = '/rosapi/tsuji_engines';
const asked = [];
let answerEngines;
const bridge = {
  state: 'connected',
  on() {},
  call(service) {
    asked.push(service);
    return service === ENGINES ? new Promise((answer) => { answerEngines = answer; }) : Promise.resolve(ANSWERS[service]);
  },
};
const countOf = (service) => asked.filter((it) => it === service).length;
const system = new System(bridge, () => true);
const heard = { looks: 0, engines: 0 };
system.on(() => { heard.looks += 1; });
system.onEngines(() => { heard.engines += 1; });
const look = async (times) => {
  for (let at = 0; at < times; at += 1) await system.look();
};

// Nobody looks at them.
await look(2);
assert.equal(countOf(ENGINES), 0);

// Routes are known as long as a process has not said what its engines take, and it is not asked for again meanwhile.
system.wantsRoutes = true;
await look(7);
assert.deepEqual({ ...heard, asked: countOf(ENGINES), settings: countOf('/rosapi/tsuji_route_settings') }, { looks: 9, engines: 0, asked: 1, settings: 7 });
assert.equal(system.settings.maySet.size, 0);

// It is shown when it comes, and that is no look.
const tell = async () => {
  answerEngines({ processes: [], processes_left_out: 0, contexts_silent: 1 });
  await new Promise(setImmediate);
};
await tell();
assert.deepEqual([heard, system.engines.silent], [{ looks: 9, engines: 1 }, 1]);

// Of three looks one asks.
for (let at = 2; at < 5; at += 1) {
  const before = countOf(ENGINES);
  await look(1);
  await tell();
  assert.equal(countOf(ENGINES), before + 1);
  await look(2);
  assert.equal(countOf(ENGINES), before + 1);
}

// Who comes back to the routes sees it at once.
const before = countOf(ENGINES);
await look(1);
await tell();
system.wantsRoutes = false;
await look(1);
system.wantsRoutes = true;
await look(1);
assert.equal(countOf(ENGINES), before + 2);
console.log('all done');
process.exit(0);
