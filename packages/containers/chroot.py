#!/usr/bin/env python3
"""Does what a container file says in a folder with a system, where no builder of containers is: its steps, then its program.

`chroot.py ROOT FILE CONTEXT COMMANDS`, as root. COMMANDS are those of bash that use the program, from inside and as its user. Once they
have ended the program is stopped, as the file says. What was started ends with this, unless it has left its session, and what takes
longer than its limit is an error. Known are the instructions that the files beside this one have; another one is an error. Apart from
the host is what the caller has put apart.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

BIND = re.compile(r'--mount=type=bind,target=(\S+)\s+')
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# Nothing is expected to come near these: they cut a hang.
STEP_SECONDS, USE_SECONDS, STOP_SECONDS, KILL_SECONDS = 300, 120, 60, 10


def instructions(text):
    """Return the instructions of a container file, each with its words, comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith('#')]
    joined = '\n'.join(lines).replace('\\\n', ' ')
    return [tuple(line.strip().split(None, 1)) for line in joined.splitlines() if line.strip()]


def finish(child, seconds, what, beside=None):
    """Wait for the end of a process, which is to be a good one. What runs beside it may not end before: it could wait for that for ever."""
    end = time.monotonic() + seconds
    while child.poll() is None:
        if beside and beside.poll() is not None:
            sys.exit(f'error: {what}: it ended with {beside.returncode} before that')
        if time.monotonic() > end:
            sys.exit(f'error: {what}: has not ended after {seconds} s')
        time.sleep(0.05)
    if child.returncode:
        sys.exit(f'error: {what}: ended with {child.returncode}')


def processes(root):
    """Return where the system tells of processes by the numbers that they have here: a caller may have put them apart, below the root."""
    for place in (root / 'proc', pathlib.Path('/proc')):
        with contextlib.suppress(OSError):
            if os.readlink(place / 'self') == str(os.getpid()):
                return place
    sys.exit(f'error: neither {root}/proc nor /proc tells of the processes here')


def members(place, session):
    """Return the processes of a session that have not ended, in whatever groups."""
    found = []
    for process in filter(str.isdecimal, os.listdir(place)):
        with contextlib.suppress(OSError):
            # Behind the name: state, parent, group, session.
            state, _, _, its, *_ = (place / process / 'stat').read_bytes().rpartition(b')')[2].split()
            if int(its) == session and state not in (b'Z', b'X'):
                found.append(int(process))
    return found


def end_session(place, session):
    """Kill all of a session, until nothing of it is left: what ends meanwhile may have started something before."""
    end = time.monotonic() + KILL_SECONDS
    while left := members(place, session):
        if time.monotonic() > end:
            sys.exit(f'error: processes {left} cannot be killed')
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


class Image:
    """A system in a folder, and what the instructions have said of it."""

    def __init__(self, root, context):
        """Begin with a system, and the folder that the file takes things from."""
        self.root, self.context, self.processes = root, context, processes(root)
        self.user, self.folder = 'root', '/'
        self.program, self.words = [], []
        self.stop = signal.SIGTERM

    def account(self):
        """Return the number of the user, that of its group, and its home."""
        for line in (self.root / 'etc/passwd').read_text().splitlines():
            name, _, user, group, _, home, _ = line.split(':')
            if name == self.user:
                return int(user), int(group), home
        sys.exit(f'error: USER {self.user}: the image has no such user')

    @contextlib.contextmanager
    def started(self, command):
        """Have a process in the image. Its session ends with this: what it has started, unless that has made another one."""
        user, group, home = self.account()

        def become():
            os.chroot(self.root)
            os.chdir(self.folder)
            os.initgroups(self.user, group)
            os.setgid(group)
            os.setuid(user)
            # A shell starts what it puts into the background with Ctrl-C ignored, a builder of containers starts nothing so.
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={'PATH': PATH, 'HOME': home}, preexec_fn=become,
                                 start_new_session=True)
        try:
            yield child
        finally:
            end_session(self.processes, child.pid)
            child.wait()

    @contextlib.contextmanager
    def mounted(self, target):
        """Have the context in the image, at this path."""
        place = self.root / target.lstrip('/')
        place.mkdir(exist_ok=True)
        subprocess.run(['mount', '--bind', '--read-only', self.context, place], check=True)
        try:
            yield
        finally:
            is_free = subprocess.run(['umount', place]).returncode == 0
            if is_free:
                place.rmdir()
        if not is_free:
            sys.exit(f'error: {target} is still used after its step, as by something that the step has started in another session')

    def run(self, command):
        """Run a command of the shell in the image, with the context where the instruction wants it."""
        mount = BIND.match(command)
        within = self.mounted(mount[1]) if mount else contextlib.nullcontext()
        with within, self.started(['/bin/sh', '-c', command[mount.end() if mount else 0:]]) as step:
            finish(step, STEP_SECONDS, f'RUN {command}')

    def follow(self, instruction, words):
        """Do what one instruction says."""
        match instruction:
            case 'FROM' | 'EXPOSE':
                pass
            case 'RUN':
                self.run(words)
            case 'USER':
                self.user = words
            case 'WORKDIR':
                self.folder = words
                (self.root / words.lstrip('/')).mkdir(parents=True, exist_ok=True)
            case 'STOPSIGNAL':
                self.stop = signal.Signals[words]
            case 'ENTRYPOINT':
                self.program = json.loads(words)
            case 'CMD':
                self.words = json.loads(words)
            case _:
                sys.exit(f'error: {instruction} is not known here')

    def use(self, commands):
        """Run the program while commands of bash use it, then stop it."""
        command = self.program + self.words
        name = ' '.join(command)
        with self.started(command) as program, self.started(['bash', '-euo', 'pipefail', '-c', commands]) as client:
            finish(client, USE_SECONDS, f'what uses {name}', program)
            program.send_signal(self.stop)
            finish(program, STOP_SECONDS, f'{name}, which got {self.stop.name}')


def main():
    """Build, and use what was built."""
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    root, file, context = (pathlib.Path(it).resolve() for it in sys.argv[1:4])
    image = Image(root, context)
    for instruction in instructions(file.read_text()):
        image.follow(*instruction)
    image.use(sys.argv[4])


if __name__ == '__main__':
    main()
