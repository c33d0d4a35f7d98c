// What carries samples in each process, why it runs, and what it takes.
import { List, complain, find, make, say } from './dom.js';
import { NONE, bytes, clock, many } from './format.js';
import { Badge } from './transport.js';

// States of transports that take nothing, of which their names are enough.
const IDLE = ['built_in', 'not_started', 'not_installed', 'left_out'];

const titleOf = ({ program, pid }) => `${program} ${pid}`;
const wordOf = (state) => state.replaceAll('_', ' ');
const idleOf = (engines) => IDLE.map((state) => ({ state, names: engines.filter((it) => it.state === state).map((it) => it.transport) }))
  .filter(({ names }) => names.length).map(({ state, names }) => `${wordOf(state)}: ${names.join(', ')}`).join('; ');
const memoryOf = ({ resident_bytes: grown, is_shared: isShared }) => `${isShared ? '~' : ''}${bytes(Math.max(0, grown ?? 0))}`;

export class Engines {
  #system;
  #rows = new List(find('engines-rows'), (row) => (row.engines ? this.#process() : this.#engine()));

  constructor(system) {
    this.#system = system;
  }

  show() {
    const { engines, refused } = this.#system;
    const why = refused.get('tsuji_engines');
    complain(find('engines-refused'), why && `What engines take is not told: ${why}`);
    find('engines-known').hidden = !engines;
    const { processes, leftOut, silent } = engines ?? { processes: [] };
    const left = leftOut ? `; ${leftOut} more are left out` : '';
    const without = silent ? `; ${silent} did not answer within a second` : '';
    say(find('engines-count'), engines ? `${many(processes.length, 'process', 'processes')}${left}${without}` : '');
    const rows = processes.flatMap((it) => [it, ...it.engines.filter(({ state }) => !IDLE.includes(state)).map((engine) => ({ ...engine, process: it.process }))]);
    this.#rows.show(rows, (it) => `${it.process.token} ${it.engines ? '' : it.transport}`);
  }

  // The figures of a whole process stand above those of its engines.
  #process() {
    const title = make('h3', { className: 'topic-name' });
    const [whole, idle] = [0, 1].map(() => make('small', { className: 'faint' }));
    return {
      element: make('tr', { className: 'process' }, make('td', { colSpan: 5 }, title, whole, idle)),
      update: ({ process, threads, resident_bytes: resident, virtual_bytes: virtual, engines }) => {
        say(title, titleOf(process));
        say(whole, `on ${process.host}: ${many(threads, 'thread', 'threads')}, ${bytes(resident)} resident, ${bytes(virtual)} of address space`);
        say(idle, idleOf(engines));
      },
    };
  }

  #engine() {
    const transport = new Badge();
    const [process, state] = [make('span', { className: 'sr' }), make('small', { className: 'faint' })];
    const [memory, threads, users] = [0, 1, 2].map(() => make('td', { className: 'n' }));
    const why = make('td', { className: 'faint' });
    return {
      element: make('tr', {}, make('th', { scope: 'row' }, process, transport.element, state), memory, threads, users, why),
      update: (it) => {
        const runs = it.state === 'running';
        say(process, `${titleOf(it.process)}: `);
        transport.show(it.transport);
        const since = it.since_wall_ns === null ? '' : ` since ${clock(it.since_wall_ns / 1e6)}`;
        say(state, `${wordOf(it.state)}${since}`);
        say(memory, runs ? memoryOf(it) : NONE);
        say(threads, runs ? String(it.threads.length) : NONE);
        threads.title = it.threads.join(', ');
        say(users, runs ? String(it.users) : NONE);
        say(why, it.because);
      },
    };
  }
}
