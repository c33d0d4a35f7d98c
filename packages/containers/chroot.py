#!/usr/bin/env python3
"""Does what a container file says in a folder with a system, where no builder of containers is: its steps, then its program.

`chroot.py ROOT FILE CONTEXT [WORDS…]`, as root. WORDS stand in the place of CMD. Known are the instructions that the files beside this
one have; another one is an error. Apart from the host is what the caller has put apart.
"""

import json
import os
import pathlib
import pwd
import re
import signal
import subprocess
import sys

BIND = re.compile(r'--mount=type=bind,target=(\S+)\s+')
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'


def instructions(text):
    """Return the instructions of a container file, each with its words, comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith('#')]
    joined = '\n'.join(lines).replace('\\\n', ' ')
    return [tuple(line.strip().split(None, 1)) for line in joined.splitlines() if line.strip()]


class Image:
    """A system in a folder, and what the instructions have said of it."""

    def __init__(self, root, context):
        """Begin with a system, and the folder that the file takes things from."""
        self.root, self.context = root, context
        self.user, self.folder = 'root', '/'
        self.program, self.words = [], []

    def become(self):
        """Be a process of the image, in this one."""
        os.chroot(self.root)
        entry = pwd.getpwnam(self.user)
        os.chdir(self.folder)
        os.initgroups(entry.pw_name, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
        return {'PATH': PATH, 'HOME': entry.pw_dir}

    def run(self, command):
        """Run a command of the shell in the image, with the context where the instruction wants it."""
        mount = BIND.match(command)
        place = self.root / mount[1].lstrip('/') if mount else None
        if place:
            place.mkdir(exist_ok=True)
            subprocess.run(['mount', '--bind', '--read-only', self.context, place], check=True)
        child = os.fork()
        if child == 0:
            os.execvpe('/bin/sh', ['sh', '-c', command[mount.end() if mount else 0:]], self.become())
        _, status = os.waitpid(child, 0)
        if place:
            subprocess.run(['umount', place], check=True)
            place.rmdir()
        if status:
            sys.exit(f'error: {command}: {status}')

    def follow(self, instruction, words):
        """Do what one instruction says."""
        match instruction:
            case 'FROM' | 'EXPOSE' | 'STOPSIGNAL':
                pass
            case 'RUN':
                self.run(words)
            case 'USER':
                self.user = words
            case 'WORKDIR':
                self.folder = words
                (self.root / words.lstrip('/')).mkdir(parents=True, exist_ok=True)
            case 'ENTRYPOINT':
                self.program = json.loads(words)
            case 'CMD':
                self.words = json.loads(words)
            case _:
                sys.exit(f'error: {instruction} is not known here')


def main():
    """Build, and become the program."""
    root, file, context = map(pathlib.Path, sys.argv[1:4])
    image = Image(root.resolve(), context.resolve())
    for instruction in instructions(file.read_text()):
        image.follow(*instruction)
    command = image.program + (sys.argv[4:] or image.words)
    # Of the caller's variables those that are tsuji's, as `--env` has them.
    asked = {name: value for name, value in os.environ.items() if name.startswith(('TSUJI_', 'ROS_'))}
    environment = image.become()
    # A shell starts what it puts into the background with Ctrl-C ignored, a builder of containers starts nothing so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ['PATH'] = PATH
    os.execvpe(command[0], command, {**environment, **asked})


if __name__ == '__main__':
    main()
