// Every flow with its transport, why it is that, and what it was before; and for each topic buttons that set its transport and take that
// back.
import { List, arrows, complain, find, make, say } from './dom.js';
import { Engines } from './engines.js';
import { NONE, clock, day, duration, many, rate, throughput } from './format.js';
import { PAST, Spark } from './spark.js';
import { Badge, paint } from './transport.js';

// The word of the bridge for what the policy says.
const AUTO = 'auto';
// How long what follows a click is waited for before it is told as it is, in milliseconds.
const PATIENCE = 10_000;
// How often the bridge is looked at before a median is told: one of a few samples says little.
const LOOKS = 3;
// The latest transports of a flow that are shown.
const HISTORY = 5;

const nameOf = ({ topic, role }) => ({ topic, request: `${topic} (requests)`, reply: `${topic} (replies)` })[role];
const endOf = ({ node, program, pid, vendor }) => (vendor ? `${node} (foreign, ${vendor})` : `${node} (${program} ${pid})`);
const keyOf = (it) => `${it.publisher.gid} ${it.subscription.gid} ${it.role}`;
const transportOf = ({ state, transport, handover_to: to, mismatches }) => {
  if (transport && to) return `${transport} → ${to}…`;
  if (state === 'incompatible') return mismatches.some((it) => it.includes('type')) ? 'none: type' : 'none: QoS';
  if (state === 'no_route') return 'none';
  return state === 'opening' ? `${transport ?? ''}…` : transport ?? '…';
};
const isForeign = ({ publisher, subscription }) => Boolean(publisher.vendor || subscription.vendor);
const isSettled = (it) => it.state !== 'opening' && !it.handover_to && it.changes.every((one) => one.is_settled || !one.from);
const dropsOf = (it) => it.displaced + it.expired + it.invalid + it.lost + it.duplicates;
// What decided; where the rule is written stands among the details.
// The name of a rule stands in quotes, and may have anything in it.
const BASIS = /^(?:"(?:\\.|[^"\\])*"|(?!; | \().)*/s;
const reasonOf = ({ mismatches, because }) => (mismatches.length ? mismatches.join('; ') : because.match(BASIS)[0]);
// By the clocks of two hosts it is about so long.
const timeOf = ({ clock: by }, us) => `${by === 'wall' ? '~' : ''}${duration(us)}`;
const medianOf = ({ latency }) => (latency ? timeOf(latency, latency.median_us) : NONE);
// How a handover went; of a first transport nothing was before.
const howOf = ({ from, is_settled: isOver, opening_us: opening, settling_us: settling, held }) => {
  if (!from) return `opened in ${duration(opening)}`;
  return isOver ? `opened in ${duration(opening)}, settled in ${duration(settling)}, ${held} held` : 'is being settled';
};

export class Routes {
  #bridge;
  #system;
  #isShown = false;
  #rows;
  #transports;
  #engines;
  // The medians of each flow, and the last one by each of its routes.
  #past = new Map();
  // What was set here and is followed until it has happened, by topic.
  #clicks = new Map();

  constructor({ bridge, system }) {
    this.#bridge = bridge;
    this.#system = system;
    this.#rows = new List(find('routes-table'), (row) => (row.flows ? this.#topic(row) : this.#flow()));
    this.#transports = new List(find('routes-transports'), () => this.#transport());
    this.#engines = new Engines(system);
    find('routes-filter').addEventListener('input', () => this.#show());
    system.on(() => {
      if (!this.#isShown) return;
      this.#note();
      this.#show();
    });
    system.onEngines(() => this.#isShown && this.#engines.show());
  }

  show(isShown) {
    this.#isShown = isShown;
    // What is set and what engines take is asked for while it is shown, and only then.
    this.#system.wantsRoutes = isShown;
    // A line of what was not looked at would have a gap that nobody sees.
    if (!isShown) this.#past.forEach((it) => { it.medians = []; });
    if (isShown) this.#show();
  }

  // Keeps what the figures were, to compare what follows with.
  #note() {
    const before = this.#past;
    this.#past = new Map();
    for (const it of this.#system.flows) {
      const past = before.get(keyOf(it)) ?? { medians: [], byEpoch: new Map() };
      const median = it.latency?.median_us;
      past.medians = [...past.medians, median].slice(-PAST);
      if (median !== undefined && !it.handover_to) past.byEpoch.set(it.changes.at(-1)?.epoch, medianOf(it));
      this.#past.set(keyOf(it), past);
    }
  }

  #show() {
    const wanted = find('routes-filter').value.trim().toLowerCase();
    const { flows, flowsLeftOut, isKnown } = this.#system;
    const text = (it) => `${nameOf(it)} ${endOf(it.publisher)} ${endOf(it.subscription)} ${transportOf(it)}`.toLowerCase();
    const topics = new Map();
    const topicOf = (topic) => topics.get(topic) ?? topics.set(topic, { topic, flows: [], shown: [] }).get(topic);
    for (const it of flows) {
      // Of a topic that is set all its flows change, whether they are shown or not.
      const { flows: all, shown } = topicOf(it.topic);
      all.push(it);
      if (text(it).includes(wanted)) shown.push(it);
    }
    // What is set and has no flow now can be taken back all the same, and what came of a click stays.
    [...(this.#system.settings?.byTopic.keys() ?? []), ...this.#clicks.keys()].forEach(topicOf);
    const has = (it) => it.shown.length || (!it.flows.length && it.topic.toLowerCase().includes(wanted));
    const rows = [...topics.values()].filter(has).flatMap((it) => [it, ...it.shown]);
    const shown = rows.filter((it) => !it.flows);
    this.#rows.show(rows, (it) => (it.flows ? `topic ${it.topic}` : keyOf(it)));
    const left = flowsLeftOut ? `, ${flowsLeftOut} more are left out` : '';
    say(find('routes-count'), isKnown ? `${shown.length} of ${many(flows.length, 'flow', 'flows')}${left}` : '');
    find('routes-none').hidden = rows.length > 0 || !isKnown;
    say(find('routes-none'), flows.length ? 'No flow has that in it.' : 'No flows: no publisher here has a subscription that matches.');
    this.#tellRights(shown);
    const transports = new Map();
    for (const { state, transport, bytes_per_s: perSecond } of shown) {
      const name = state === 'active' && transport ? transport : 'none';
      const it = transports.get(name) ?? { name, count: 0, perSecond: 0 };
      transports.set(name, { name, count: it.count + 1, perSecond: it.perSecond + perSecond });
    }
    this.#transports.show([...transports.values()].sort((a, b) => b.count - a.count), (it) => it.name);
  }

  #maySet(topic) {
    return this.#system.settings?.maySet.has(topic) ?? false;
  }

  // Why there is nothing to set topics by, if that is so.
  #tellRights(flows) {
    const { settings, refused } = this.#system;
    const refusal = refused.get('tsuji_route_settings');
    const without = flows.filter((it) => !this.#maySet(it.topic)).length;
    const what = without === flows.length ? 'Transports' : 'Topics without buttons';
    const why = settings && without && 'this user of the bridge has no right set_route there.';
    complain(find('routes-rights'), (refusal || why) && `${what} can be looked at and not set: ${refusal || why}`);
  }

  #transport() {
    const [badge, rest] = [new Badge(), make('span')];
    return {
      element: make('li', {}, badge.element, ' ', rest),
      update: (it) => {
        badge.show(it.name, it.name, it.name === 'none');
        say(rest, it.perSecond > 0 ? `${many(it.count, 'flow', 'flows')}, ${throughput(it.perSecond)}` : many(it.count, 'flow', 'flows'));
      },
    };
  }

  // The name of a topic, and what sets it: a toolbar, which is one stop of the keyboard, however many transports it has.
  #topic({ topic }) {
    const bar = make('div', { className: 'choices', role: 'toolbar', 'aria-label': `Transport of ${topic}` });
    const buttons = new List(bar, (name) => this.#choice(topic, name, bar));
    const back = make('button', { type: 'button', className: 'undo' });
    back.addEventListener('click', () => this.#change(topic, 'undo_route', { topic }, 'Taking back what was set.'));
    const told = make('p', { className: 'told', role: 'status' });
    const wrong = make('p', { className: 'problem', role: 'alert', hidden: true });
    const name = make('h2', { className: 'topic-name', textContent: topic, tabIndex: -1 });
    const none = make('small', { className: 'faint', textContent: 'no flow now' });
    const control = make('div', { className: 'bar set' }, name, none, bar, back);
    arrows(bar, () => [...bar.children], (it) => it.focus());
    bar.addEventListener('focusin', ({ target }) => [...bar.children].forEach((it) => { it.tabIndex = it === target ? 0 : -1; }));
    const element = make('tbody', { className: 'topic' }, make('tr', {}, make('td', { colSpan: 5 }, control, told, wrong)));
    return {
      element,
      update: ({ flows }) => {
        const own = flows.filter((it) => !isForeign(it));
        const click = this.#clicks.get(topic);
        const set = this.#system.settings?.byTopic.get(topic);
        none.hidden = flows.length > 0;
        // Flows with foreign nodes keep their transport.
        const isOffered = this.#maySet(topic) && (own.length > 0 || Boolean(set));
        bar.hidden = !isOffered;
        const choices = isOffered ? this.#offered(own).map((it) => this.#stateOf(topic, it, own)) : [];
        buttons.show(choices, (it) => it.name);
        // One of them is always a stop of the keyboard.
        if (choices.length && ![...bar.children].some((it) => it.tabIndex === 0)) {
          ([...bar.children].find((it) => it.getAttribute('aria-pressed') === 'true') ?? bar.firstElementChild).tabIndex = 0;
        }
        const undo = isOffered ? set?.undo : undefined;
        const isLeft = !undo && document.activeElement === back;
        back.hidden = !undo;
        say(back, undo ? `Undo: back to ${undo}` : '');
        back.setAttribute('aria-disabled', String(click?.isAsking ?? false));
        // Whoever has just used it is not to begin anew at the top of the page.
        if (isLeft) (bar.querySelector('[tabindex="0"]') ?? name).focus();
        if (click?.isFollowed) this.#follow(click, own);
        say(told, click?.told ?? '');
        complain(wrong, click?.wrong);
      },
    };
  }

  // All transports that a flow of the topic was decided between, always in one order; where there is none, all that are known.
  #offered(flows) {
    const named = new Set(flows.flatMap((it) => [it.transport, ...it.rejected.map(([name]) => name)]));
    const { transports } = this.#system.settings;
    return [AUTO, ...(flows.length ? transports.filter((it) => named.has(it)) : transports)];
  }

  // How a transport stands for a topic with these flows.
  #stateOf(topic, name, flows) {
    const { byTopic, unable } = this.#system.settings;
    return {
      name,
      isSet: name === (byTopic.get(topic)?.transport ?? AUTO),
      carries: flows.some((it) => it.transport === name),
      whyNot: unable[topic]?.[name],
      isBusy: Boolean(this.#clicks.get(topic)?.isAsking),
    };
  }

  #choice(topic, { name }, bar) {
    const button = make('button', { type: 'button', className: name === AUTO ? '' : 'transport', textContent: name, tabIndex: -1 });
    if (name === AUTO) button.title = 'What the policy says'; else paint(button, name);
    button.addEventListener('click', () => {
      if (bar.querySelector('[aria-disabled=true]')) return;
      const what = name === AUTO ? 'Leaving it to the policy.' : `Setting it to ${name}.`;
      this.#change(topic, 'set_route', { topic, transport: name }, what);
    });
    return {
      element: button,
      update: ({ isSet, carries, whyNot, isBusy }) => {
        button.setAttribute('aria-pressed', String(isSet));
        button.classList.toggle('carries', carries);
        button.classList.toggle('unable', Boolean(whyNot));
        // One that is disabled would lose the focus of whoever has just used it.
        button.setAttribute('aria-disabled', String(isBusy));
        if (name !== AUTO) button.title = whyNot ?? (carries ? 'Carries it now' : `Set ${topic} to ${name}`);
      },
    };
  }

  // Asks the bridge, and then tells what comes of it as it happens.
  async #change(topic, service, request, what) {
    if (this.#clicks.get(topic)?.isAsking) return;
    const own = this.#system.flows.filter((it) => it.topic === topic && !isForeign(it));
    const before = new Map(own.map((it) => [keyOf(it), { median: medianOf(it), epoch: it.epoch, transport: it.transport }]));
    const click = { before, told: what, isAsking: true };
    this.#clicks.set(topic, click);
    this.#show();
    try {
      const answer = await this.#bridge.call(`/rosapi/tsuji_${service}`, request);
      const { transport, flows, processes, silent, others, not_carried: notCarried, routes } = answer;
      const refused = processes.filter((it) => it.refused);
      click.done = transport === AUTO ? 'Left to the policy' : `Set to ${transport}`;
      click.done += flows ? `, for ${many(flows, 'flow', 'flows')}.` : '; it has no flow now.';
      if (notCarried.length) click.done += ` ${many(notCarried.length, 'flow', 'flows')} not: ${notCarried[0].because}.`;
      if (refused.length) click.done += ` ${refused[0].process.program} ${refused[0].process.pid} refuses: ${refused[0].refused}.`;
      if (silent.length) click.done += ` ${silent[0].program} ${silent[0].pid} has not answered yet.`;
      if (others.refused) click.done += ` ${many(others.refused, 'other process refuses', 'other processes refuse')}.`;
      const isSame = routes.every((it) => isSettled(it) && before.get(keyOf(it))?.epoch === it.epoch);
      if (flows && isSame) click.done += ' What carries it stays the same.';
      Object.assign(click, { told: click.done, isFollowed: !isSame, until: Date.now() + PATIENCE, looks: 0 });
    } catch (error) {
      Object.assign(click, { told: '', wrong: error.message });
    }
    click.isAsking = false;
    await this.#system.look();
    if (this.#isShown) this.#show();
  }

  // Tells how far the flows of a topic have come since a click. The last of it stays.
  #follow(click, flows) {
    const changed = flows.filter((it) => click.before.has(keyOf(it)) && it.epoch !== click.before.get(keyOf(it)).epoch);
    const isOver = click.until < Date.now();
    click.looks += changed.length > 0 && flows.every(isSettled);
    const isDone = isOver || LOOKS <= click.looks;
    click.isFollowed = !isDone;
    if (!changed.length) return;
    const [first] = changed;
    const change = first.changes.at(-1);
    const was = click.before.get(keyOf(first));
    const more = changed.length > 1 ? ` (and ${many(changed.length - 1, 'other flow', 'other flows')})` : '';
    const median = isDone && first.latency ? `; median ${was.median} → ${medianOf(first)}` : '';
    click.told = `${click.done} ${was.transport ?? 'none'} → ${first.transport}${more}: ${change.why}; ${howOf(change)}${median}.`;
  }

  // Two rows a flow: what it is, and why and since when.
  #flow() {
    const cell = (className, ...children) => make('td', { className }, ...children);
    const small = () => make('small', { className: 'faint' });
    const [name, ends] = [make('span', { className: 'sr' }), make('span')];
    const role = make('strong');
    const [transport, traits] = [new Badge(), small()];
    const [hz, perSecond] = [make('span'), small()];
    const [median, p99] = [make('span'), small()];
    const spark = new Spark();
    const drops = make('span');
    const bar = make('div', { className: 'past', 'aria-hidden': 'true' });
    const parts = new List(bar, () => this.#part());
    const history = make('ol', { className: 'history', 'aria-label': 'Transports that it has had' });
    const changes = new List(history, () => this.#changeOf());
    const why = make('summary');
    const more = make('dl');
    const details = make('details', {}, why, more);
    const element = make('tbody', { className: 'flow' },
      make('tr', {}, make('th', { scope: 'row' }, name, role, ends), cell('', transport.element, traits), cell('n', hz, perSecond),
        cell('n', make('span', { className: 'figure' }, spark.element, median), p99), cell('n wide-only', drops)),
      make('tr', {}, make('td', { colSpan: 5 }, bar, history, details)));
    let last;
    const tell = () => details.open && this.#tell(more, last);
    details.addEventListener('toggle', tell);
    return {
      element,
      update: (it) => {
        last = it;
        const isKnown = it.is_counted;
        const past = this.#past.get(keyOf(it));
        say(name, `${it.topic}: `);
        say(role, { topic: '', request: 'requests ', reply: 'replies ' }[it.role]);
        say(ends, `${endOf(it.publisher)} → ${endOf(it.subscription)}`);
        transport.show(it.transport, transportOf(it), ['incompatible', 'no_route'].includes(it.state));
        say(traits, `${it.size}, ${it.scope}, ${it.reliability.replace('_', ' ')}`);
        say(hz, rate(isKnown ? it.rate_hz : 0));
        say(perSecond, isKnown && it.bytes_per_s > 0 ? throughput(it.bytes_per_s) : '');
        say(median, medianOf(it));
        say(p99, it.latency ? `p99 ${timeOf(it.latency, it.latency.p99_us)}` : '');
        spark.show(past?.medians ?? []);
        say(drops, isKnown ? String(dropsOf(it)) : NONE);
        drops.classList.toggle('warn', isKnown && dropsOf(it) > 0);
        // The first route is no change, and says nothing that does not stand above.
        const isChanged = it.changes.length > 1;
        bar.hidden = history.hidden = !isChanged;
        const now = Date.now() + this.#bridge.ahead;
        const shown = isChanged ? it.changes.slice(-HISTORY) : [];
        const all = shown.map((one, at) => ({ ...one, until: (shown[at + 1]?.wall_ns ?? now * 1e6), median: past?.byEpoch.get(one.epoch) }));
        parts.show(all, (one) => one.epoch);
        changes.show(all, (one) => one.epoch);
        say(why, reasonOf(it));
        tell();
      },
    };
  }

  // How long a flow had a transport, as a part of a bar.
  #part() {
    const element = make('span');
    return {
      element,
      update: ({ to, wall_ns: since, until }) => {
        paint(element, to);
        element.style.flexGrow = String(Math.max(1, (until - since) / 1e9));
      },
    };
  }

  // Since when a flow had a transport, and why.
  #changeOf() {
    const [time, transport, why] = [make('time'), new Badge(), make('span', { className: 'faint' })];
    return {
      element: make('li', {}, time, ' ', transport.element, ' ', why),
      update: (it) => {
        say(time, clock(it.wall_ns / 1e6));
        time.dateTime = new Date(it.wall_ns / 1e6).toISOString();
        transport.show(it.to);
        say(why, [it.why, it.median && `median ${it.median}`].filter(Boolean).join('; '));
      },
    };
  }

  #tell(list, it) {
    const pairs = [['Because', it.because]];
    if (it.pinned) pairs.push(['Set', `${it.pinned}, by the user`]);
    it.mismatches.forEach((text) => pairs.push(['Mismatch', text]));
    it.rejected.forEach(([transport, reason]) => pairs.push([`Not ${transport}`, reason]));
    const [ours, theirs] = [it.publisher.certificate, it.subscription.certificate];
    if (it.protection) pairs.push(['Protection', it.protection]);
    if (ours && theirs) pairs.push(['Secured', `${ours.subject} and ${theirs.subject} have proved their keys; until ${day(Math.min(ours.expires_wall_ns, theirs.expires_wall_ns) / 1e6)}`]);
    pairs.push(['Type', it.type_name]);
    pairs.push(['Size now', `${it.size} (${it.sample_bytes ? `${it.sample_bytes} bytes, ` : ''}${it.size_origin})`]);
    const taken = it.is_counted ? `${it.samples} taken` : 'taken: not known';
    pairs.push(['Samples', it.publisher.vendor ? taken : `${it.sent} sent, ${taken}`]);
    if (it.latency) pairs.push(['Latency', `median ${duration(it.latency.median_us)}, p99 ${duration(it.latency.p99_us)}, at most ${duration(it.latency.max_us)}, by the ${it.latency.clock} clock`]);
    pairs.push(['Drops', `${it.displaced} displaced, ${it.expired} expired, ${it.invalid} invalid, ${it.lost} lost, ${it.duplicates} duplicates`]);
    const change = it.changes.at(-1);
    if (change) pairs.push(['Changed', `${clock(change.wall_ns / 1e6)}: ${change.from ?? 'none'} → ${change.to}, since ${change.why}; ${howOf(change)}`]);
    if (list.children.length !== 2 * pairs.length) list.replaceChildren(...pairs.flatMap(() => [make('dt'), make('dd')]));
    pairs.forEach(([title, text], at) => {
      say(list.children[2 * at], title);
      say(list.children[2 * at + 1], text);
    });
  }
}
