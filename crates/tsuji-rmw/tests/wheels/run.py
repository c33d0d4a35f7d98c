"""Runs the table of tests of real ROS 2 nodes on rmw_tsuji, and prints it.

  run.py --library FILE --python DISTRIBUTION=PROGRAM… [--only WORD] [--control]
"""

import argparse
import fnmatch
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import table

HERE = os.path.dirname(os.path.abspath(__file__))
# Groups at once. Rows mostly wait, and two cores carry these.
AT_ONCE = 6
# No row is silent for so long: child.py cuts what hangs before.
SILENT_SECONDS = 120
# What is known to fail need not be waited for as long.
NOT_YET_SECONDS = 6

OK, FAILED, NOT_YET, MET = 'ok', 'FAILED', 'not yet', 'FAILED: met'


class Group:
    """Rows of a module, between two middlewares of a distribution: run by one process after each other."""

    def __init__(self, distribution, here, there, module, texts):
        self.distribution, self.here, self.there, self.module, self.texts = distribution, here, there, module, texts
        # text: (how it ended, why)
        self.ended = {}
        # text: what it found, where it measures
        self.values = {}

    def reason(self, text):
        return table.not_yet(self.distribution, self.here, self.there, self.module, text)

    def name(self, text):
        return f'{self.module}: {text} ({self.distribution}, {self.peers})'

    @property
    def peers(self):
        here, there = (it.removeprefix('rmw_').removesuffix('_cpp') for it in (self.here, self.there))
        return f'{here} + {there}'


class Runner:
    """What all groups are run with."""

    def __init__(self, pythons, library, folder):
        self.pythons, self.library, self.folder = pythons, library, folder
        self.domains = iter(range(10, 10_000))
        self.lock = threading.Lock()

    def environment(self, distribution, rmw):
        """That of a process on a middleware; what is not to be there is None."""
        prefix = os.path.dirname(os.path.dirname(self.pythons[distribution]))
        # rcl of the wheels is linked to rmw_fastrtps_cpp: what is there before it is what it uses.
        return {
            'RMW_IMPLEMENTATION': rmw, 'LD_PRELOAD': self.library if rmw == table.TSUJI else None,
            'ROS_DISTRO': distribution, 'AMENT_PREFIX_PATH': prefix, 'ROS_LOG_DIR': os.path.join(self.folder, 'log'),
            'PYTHONDONTWRITEBYTECODE': '1'}

    def run(self, group):
        """Runs the rows of a group; where a process ends in a row, another one goes on behind it."""
        with self.lock:
            domain = next(self.domains) % 90
        failing = [it for it in group.texts if group.reason(it)]
        # Of those with one reason the first says whether it still holds.
        witnesses = {group.reason(it): it for it in reversed(failing)}
        firm = [it for it in group.texts if it not in failing]
        for texts, seconds in ((firm, None), (list(witnesses.values()), NOT_YET_SECONDS)):
            while texts := [it for it in texts if it not in group.ended]:
                self.run_process(group, texts, domain, seconds)
        for text in failing:
            how, why = group.ended.get(text, (None, None))
            if how == OK:
                group.ended[text] = MET, f'it passes: take "{group.reason(text)}" off NOT_YET in table.py, as far as it is met'
            else:
                group.ended[text] = NOT_YET, group.reason(text)

    def run_process(self, group, texts, domain, seconds):
        there = self.environment(group.distribution, group.there)
        environment = {**os.environ, **self.environment(group.distribution, group.here)}
        environment.update(
            WHEELS_THERE=json.dumps(there), ROS_DOMAIN_ID=str(domain),
            TSUJI_RUNTIME_DIR=os.path.join(self.folder, 'run'))
        for name in [name for name, value in environment.items() if value is None] + ['TSUJI_INTEROP', 'TSUJI_POLICY']:
            environment.pop(name, None)
        if seconds:
            environment['WHEELS_DEADLINE'] = str(seconds)
        reads, writes = os.pipe()
        with tempfile.TemporaryFile('w+', dir=self.folder) as said:
            process = subprocess.Popen(
                [self.pythons[group.distribution], os.path.join(HERE, 'child.py'), 'rows', f'rows.{group.module}', *texts],
                env=dict(environment, WHEELS_REPORT=str(writes)), pass_fds=[writes], stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, start_new_session=True)
            os.close(writes)
            running = self.follow(group, process, reads)
            status = process.wait()
            # Those that it started too.
            end_all(process.pid)
            said.seek(0)
            words = said.read()[-10_000:].strip()
            if running:
                group.ended[running] = FAILED, f'its process ended with {status}:\n{words}'
            elif status != 0:
                rest = [it for it in texts if it not in group.ended]
                group.ended[(rest or texts)[-1]] = FAILED, f'the process ended with {status} after its rows:\n{words}'
                for text in rest:
                    group.ended[text] = FAILED, f'the process ended with {status} before it:\n{words}'

    def follow(self, group, process, reads):
        """Takes what a process tells until it ends, and returns the row that it ended in."""
        running = None
        timer = threading.Timer(SILENT_SECONDS, end_all, [process.pid])
        timer.start()
        with os.fdopen(reads) as tells:
            for line in tells:
                timer.cancel()
                timer = threading.Timer(SILENT_SECONDS, end_all, [process.pid])
                timer.start()
                words = json.loads(line)
                running = words['row'] if words['state'] == 'began' else None
                if words['state'] == 'ended':
                    group.values[words['row']] = words['value']
                    group.ended[words['row']] = (OK, None) if words['reason'] is None else (FAILED, words['reason'])
        timer.cancel()
        return running


def end_all(session):
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass


def rows_of(runner, distribution, modules):
    """The rows of modules, as that distribution has them."""
    program = (
        'import json, sys, scene\n'
        'print(json.dumps({m: [(r.text, r.alone) for r in scene.rows_of(f"rows.{m}")] for m in sys.argv[1:]}))')
    environment = {**os.environ, 'WHEELS_THERE': '{}', 'PYTHONDONTWRITEBYTECODE': '1'}
    for name in 'RMW_IMPLEMENTATION', 'LD_PRELOAD':
        environment.pop(name, None)
    out = subprocess.run([runner.pythons[distribution], '-c', program, *modules], cwd=HERE, env=environment, check=True,
                         stdout=subprocess.PIPE, timeout=60).stdout
    return json.loads(out)


def groups_of(runner, wanted, control):
    """All groups, those that wait longest first."""
    groups, kinds = [], {}
    for distribution in runner.pythons:
        kinds[distribution] = rows_of(runner, distribution, table.MODULES)
    for module in table.MODULES:
        for distribution in runner.pythons:
            for here, there in table.CONTROL if control else table.PEERS:
                texts = [text for text, alone in kinds[distribution][module]
                         if not (alone and table.FASTRTPS in (here, there)) and fnmatch.fnmatch(f'{module}: {text}', f'*{wanted}*')]
                if texts:
                    groups.append(Group(distribution, here, there, module, texts))
    return groups


def told(group, text):
    """Says how a row ended, in the words of cargo's tests."""
    how, why = group.ended[text]
    end = {OK: 'ok', NOT_YET: f'ignored, not met yet: {why}'}.get(how, f'FAILED\n    {why}')
    print(f'test {group.name(text)} ... {end}', flush=True)


def show(groups):
    """Prints a line a row, with a column for each distribution and pair of middlewares."""
    columns = list(dict.fromkeys((it.distribution, it.peers) for it in groups))
    cells, lines = {}, {}
    for group in groups:
        for text in group.texts:
            lines.setdefault((group.module, text))
            cells[group.module, text, group.distribution, group.peers] = group.ended[text][0]
    print()
    for number, (distribution, peers) in enumerate(columns, 1):
        print(f'{number}: {distribution}, {peers}')
    width = max(len(f'{module}: {text}') for module, text in lines)
    print(' ' * width + ''.join(f' {number:>7}' for number in range(1, len(columns) + 1)))
    for module, text in lines:
        words = ''.join(f' {cells.get((module, text, *column), "-")[:7]:>7}' for column in columns)
        print(f'{module}: {text}'.ljust(width) + words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--library', required=True)
    parser.add_argument('--python', action='append', required=True)
    parser.add_argument('--only', default='')
    parser.add_argument('--control', action='store_true')
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='tsuji-wheels-') as folder:
        runner = Runner(dict(it.split('=', 1) for it in asked.python), os.path.abspath(asked.library), folder)
        groups = groups_of(runner, asked.only, asked.control)
        waiting, lock = queue.SimpleQueue(), threading.Lock()
        for group in groups:
            waiting.put(group)

        def work():
            while True:
                try:
                    group = waiting.get_nowait()
                except queue.Empty:
                    return
                runner.run(group)
                with lock:
                    for text in group.texts:
                        told(group, text)

        workers = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if not groups:
        print(f'error: no row has {asked.only!r} in it', file=sys.stderr)
        return 2
    show(groups)
    ends = [how for group in groups for how, _ in group.ended.values()]
    passed, ignored = ends.count(OK), ends.count(NOT_YET)
    failed = len(ends) - passed - ignored
    print()
    for group in groups:
        for text in group.texts:
            if group.ended[text][0] not in (OK, NOT_YET):
                told(group, text)
    print(f'test result: {"FAILED" if failed else "ok"}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured;'
          f' 0 filtered out; finished in {time.monotonic() - began:.2f}s')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
