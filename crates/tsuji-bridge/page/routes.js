// Every flow with its transport, and why it is that.
import { List, find, make, say } from './dom.js';
import { duration, many, rate, throughput } from './format.js';

const COLOURS = { shm: 'c0', inproc: 'c2', cyclonedds: 'c1', fastdds: 'c3', zenoh: 'c4' };

const nameOf = ({ topic, role }) => ({ topic, request: `${topic} (requests)`, reply: `${topic} (replies)` })[role];
const endOf = ({ node, program, pid, vendor }) => (vendor ? `${node} (plain, ${vendor})` : `${node} (${program} ${pid})`);
const transportOf = ({ state, transport, handover_to: to, mismatches }) => {
  if (transport && to) return `${transport} → ${to}…`;
  if (state === 'incompatible') return mismatches.some((it) => it.includes('type')) ? 'none: type' : 'none: QoS';
  if (state === 'no_route') return 'none';
  return state === 'opening' ? `${transport ?? ''}…` : transport ?? '…';
};
const dropsOf = (it) => it.displaced + it.expired + it.invalid + it.lost + it.duplicates;
// What decided; where the rule is written stands among the details.
// The name of a rule stands in quotes, and may have anything in it.
const BASIS = /^(?:"(?:\\.|[^"\\])*"|(?!; | \().)*/s;
const reasonOf = ({ mismatches, because }) => (mismatches.length ? mismatches.join('; ') : because.match(BASIS)[0]);

const paint = (element, transport) => {
  element.style.setProperty('--colour', `var(--${COLOURS[transport] ?? 'c6'})`);
};

export class Routes {
  #system;
  #isShown = false;
  #flows;
  #transports;

  constructor({ system }) {
    this.#system = system;
    this.#flows = new List(find('routes-table'), (flow) => this.#body(flow));
    this.#transports = new List(find('routes-transports'), () => this.#transport());
    find('routes-filter').addEventListener('input', () => this.#show());
    system.on(() => this.#isShown && this.#show());
  }

  show(isShown) {
    this.#isShown = isShown;
    if (isShown) this.#show();
  }

  #show() {
    const wanted = find('routes-filter').value.trim().toLowerCase();
    const { flows, flowsLeftOut, isKnown } = this.#system;
    const text = (it) => `${nameOf(it)} ${endOf(it.publisher)} ${endOf(it.subscription)} ${transportOf(it)}`.toLowerCase();
    const shown = flows.filter((it) => text(it).includes(wanted));
    this.#flows.show(shown, (it) => `${it.publisher.gid} ${it.subscription.gid} ${it.role}`);
    const left = flowsLeftOut ? `, ${flowsLeftOut} more are left out` : '';
    say(find('routes-count'), isKnown ? `${shown.length} of ${many(flows.length, 'flow', 'flows')}${left}` : '');
    find('routes-none').hidden = shown.length > 0 || !isKnown;
    say(find('routes-none'), flows.length ? 'No flow has that in it.' : 'No flows: no publisher here has a subscription that matches.');
    const transports = new Map();
    for (const { state, transport, bytes_per_s: perSecond } of shown) {
      const name = state === 'active' && transport ? transport : 'none';
      const it = transports.get(name) ?? { name, count: 0, perSecond: 0 };
      transports.set(name, { name, count: it.count + 1, perSecond: it.perSecond + perSecond });
    }
    this.#transports.show([...transports.values()].sort((a, b) => b.count - a.count), (it) => it.name);
  }

  #transport() {
    const [name, rest] = [make('span', { className: 'transport' }), make('span')];
    return {
      element: make('li', {}, name, ' ', rest),
      update: (it) => {
        say(name, it.name);
        name.classList.toggle('none', it.name === 'none');
        paint(name, it.name);
        say(rest, it.perSecond > 0 ? `${many(it.count, 'flow', 'flows')}, ${throughput(it.perSecond)}` : many(it.count, 'flow', 'flows'));
      },
    };
  }

  // Two rows a flow: what it is, and why.
  #body(flow) {
    const cell = (className, ...children) => make('td', { className }, ...children);
    const small = () => make('small', { className: 'faint' });
    const name = make('span', { className: 'topic-name', textContent: nameOf(flow) });
    const ends = small();
    const [transport, traits] = [make('span', { className: 'transport' }), small()];
    const [hz, perSecond] = [make('span'), small()];
    const [median, p99] = [make('span'), small()];
    const drops = make('span');
    const why = make('summary');
    const more = make('dl');
    const details = make('details', {}, why, more);
    const element = make('tbody', {},
      make('tr', {}, make('th', { scope: 'row' }, name, ends), cell('', transport, traits), cell('n', hz, perSecond),
        cell('n wide-only', median, p99), cell('n wide-only', drops)),
      make('tr', {}, make('td', { colSpan: 5 }, details)));
    let last;
    const tell = () => details.open && this.#tell(more, last);
    details.addEventListener('toggle', tell);
    return {
      element,
      update: (it) => {
        last = it;
        const isKnown = it.is_counted;
        say(ends, `${endOf(it.publisher)} → ${endOf(it.subscription)}`);
        say(transport, transportOf(it));
        transport.classList.toggle('none', ['incompatible', 'no_route'].includes(it.state));
        paint(transport, it.transport);
        say(traits, `${it.size}, ${it.scope}, ${it.reliability.replace('_', ' ')}`);
        say(hz, rate(isKnown ? it.rate_hz : 0));
        say(perSecond, isKnown && it.bytes_per_s > 0 ? throughput(it.bytes_per_s) : '');
        const about = it.latency?.clock === 'wall' ? '~' : '';
        say(median, it.latency ? `${about}${duration(it.latency.median_us)}` : '–');
        say(p99, it.latency ? `p99 ${about}${duration(it.latency.p99_us)}` : '');
        say(drops, isKnown ? String(dropsOf(it)) : '–');
        drops.classList.toggle('warn', isKnown && dropsOf(it) > 0);
        say(why, reasonOf(it));
        tell();
      },
    };
  }

  #tell(list, it) {
    const pairs = [['Because', it.because]];
    if (it.pinned) pairs.push(['Set', `${it.pinned}, by the user`]);
    it.mismatches.forEach((text) => pairs.push(['Mismatch', text]));
    it.rejected.forEach(([transport, reason]) => pairs.push([`Not ${transport}`, reason]));
    pairs.push(['Type', it.type_name]);
    pairs.push(['Size now', `${it.size} (${it.sample_bytes ? `${it.sample_bytes} bytes, ` : ''}${it.size_origin})`]);
    const taken = it.is_counted ? `${it.samples} taken` : 'taken: not known';
    pairs.push(['Samples', it.publisher.vendor ? taken : `${it.sent} sent, ${taken}`]);
    if (it.latency) pairs.push(['Latency', `median ${duration(it.latency.median_us)}, p99 ${duration(it.latency.p99_us)}, at most ${duration(it.latency.max_us)}, by the ${it.latency.clock} clock`]);
    pairs.push(['Drops', `${it.displaced} displaced, ${it.expired} expired, ${it.invalid} invalid, ${it.lost} lost, ${it.duplicates} duplicates`]);
    const change = it.changes.filter((one) => one.from).pop();
    if (change) pairs.push(['Changed', `${new Date(change.wall_ns / 1e6).toLocaleTimeString()}: ${change.from} → ${change.to}, since ${change.why}`]);
    if (list.children.length !== 2 * pairs.length) list.replaceChildren(...pairs.flatMap(() => [make('dt'), make('dd')]));
    pairs.forEach(([title, text], at) => {
      say(list.children[2 * at], title);
      say(list.children[2 * at + 1], text);
    });
  }
}
