// The page as a whole: its connection, its tabs, and what stands around them.
import { Bridge } from './bridge.js';
import { Call } from './call.js';
import { complain, find, make, offer, say } from './dom.js';
import { clock, many } from './format.js';
import { Picture } from './picture.js';
import { Playback } from './playback.js';
import { Plot } from './plot.js';
import { Publish } from './publish.js';
import { Routes } from './routes.js';
import { System } from './system.js';
import { Tabs } from './tabs.js';
import { Topics } from './topics.js';

const TOKEN = 'tsuji-token';
const SCHEME = 'tsuji-scheme';
// Of more problems the oldest goes.
const PROBLEMS_MAX = 3;

const root = document.documentElement;
const dark = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (root.dataset.scheme ?? (dark.matches ? 'dark' : 'light')) === 'dark';
const nameScheme = () => say(find('scheme'), isDark() ? 'Light' : 'Dark');
const scheme = localStorage.getItem(SCHEME);
if (scheme) root.dataset.scheme = scheme;
find('scheme').addEventListener('click', () => {
  root.dataset.scheme = isDark() ? 'light' : 'dark';
  localStorage.setItem(SCHEME, root.dataset.scheme);
  nameScheme();
});
dark.addEventListener('change', nameScheme);
nameScheme();

// Beside the page, wherever a proxy has put that.
const address = new URL(document.querySelector('meta[name=tsuji-websockets]').content, location.href);
address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
const bridge = new Bridge(address.href, sessionStorage.getItem(TOKEN) ?? undefined);
say(find('where'), `bridge at ${location.host}`);

const problem = (text) => {
  const close = make('button', { type: 'button', textContent: '✕', 'aria-label': 'Dismiss' });
  const it = make('div', { className: 'bar' }, make('p', { className: 'grow', textContent: text }), close);
  close.addEventListener('click', () => it.remove());
  find('problems').append(it);
  while (PROBLEMS_MAX < find('problems').children.length) find('problems').firstElementChild.remove();
};
bridge.on('problem', problem);

// While it is tried again and again that is said once.
let wasLost = false;
const TOLD = { connected: 'connected', connecting: 'connecting', token: 'token needed', closed: 'not connected, trying again' };
bridge.on('state', (state, more) => {
  const shown = state === 'connecting' && wasLost ? 'closed' : state;
  wasLost = shown === 'closed';
  find('state').dataset.state = shown;
  say(find('state'), TOLD[shown]);
  if (state === 'token' && !find('token').open) find('token').showModal();
  if (state === 'token') complain(find('token-wrong'), more && 'Wrong token.');
  if (state === 'connected') find('token').close();
});
find('token').addEventListener('cancel', (event) => event.preventDefault());
find('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = find('token-input').value;
  sessionStorage.setItem(TOKEN, token);
  bridge.authenticate(token);
});

const panels = {};
let tabs;
const system = new System(bridge, () => ['topics', 'routes', 'picture'].includes(tabs.chosen));
const go = (name, topic) => {
  tabs.choose(name);
  find(`tab-${name}`).scrollIntoView({ block: 'nearest' });
  panels[name].choose(topic);
};
const parts = { bridge, system, go, keep: (name, state) => tabs.keep(name, state) };
Object.assign(panels, {
  topics: new Topics(parts),
  routes: new Routes(parts),
  picture: new Picture(parts),
  plot: new Plot(parts),
  publish: new Publish(parts),
  call: new Call(parts),
});
new Playback(parts);
let shown;
tabs = new Tabs(document.querySelector('[role=tablist]'), (name) => {
  panels[shown]?.show(false);
  shown = name;
  panels[name].show(true);
  system.look();
}, (name, state) => panels[name].restore?.(state));

// Nothing is heard for a page that nobody sees.
document.addEventListener('visibilitychange', () => panels[shown].show(!document.hidden));

// Figures that are not of now are marked, and it is said of when they are.
setInterval(() => {
  const isStale = system.isStale;
  document.body.classList.toggle('stale', isStale);
  const since = isStale && clock(system.at);
  complain(find('stale'), isStale && `Stale: these figures are of ${since}. The bridge has told nothing since.`);
}, 500);

system.on(() => {
  offer(find('known-topics'), system.topics.map((it) => it.name));
  offer(find('known-types'), [...new Set([...system.topics.map((it) => it.type), ...system.messages])].sort());
  offer(find('known-services'), system.services);
  const { connections, published, received, dropped, throttled, missed, refused } = system.counters;
  if (connections === undefined) return;
  say(find('counters'), [
    many(connections, 'connection', 'connections'),
    `${received} samples for clients`,
    `${published} published by clients`,
    `${dropped} dropped`,
    `${throttled} throttled`,
    `${missed} missed`,
    `${refused} refused`,
  ].join(' · '));
});
bridge.connect();
