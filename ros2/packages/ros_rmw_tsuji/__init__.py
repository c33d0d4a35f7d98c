"""Puts rmw_tsuji under the ROS 2 of wheels where RMW_IMPLEMENTATION says so.

The wheels have no rmw_implementation that would load a middleware by its name: rcl is linked to rmw_fastrtps_cpp. So the
library is loaded before it, by LD_PRELOAD, which counts only from the start of a process. Python imports this module
when it starts, before the module that starts Python anew with the paths of ROS 2.
"""

import os
import sys

NAME = 'rmw_tsuji'


def library():
    """Return the path of librmw_tsuji.so, whether it is there or not."""
    return os.path.join(sys.prefix, 'lib', 'librmw_tsuji.so')


def preload(environment, path):
    """Return LD_PRELOAD as it has to be in this environment: with the library at `path`, or without it."""
    others = [it for it in environment.get('LD_PRELOAD', '').replace(':', ' ').split() if it != path]
    wanted = environment.get('RMW_IMPLEMENTATION') == NAME
    return ':'.join([path] + others if wanted else others)


def start():
    """Start Python anew where LD_PRELOAD is not as it has to be."""
    path = library()
    there = os.environ.get('LD_PRELOAD', '')
    wanted = preload(os.environ, path)
    if wanted.replace(':', ' ').split() == there.replace(':', ' ').split():
        return
    if path in wanted.split(':') and not os.path.exists(path):
        # Python itself goes on: pip, which can mend it, is Python too.
        sys.stderr.write(
            f'RMW_IMPLEMENTATION is {NAME}, and {path} is not there; allowed: pip install ros-rmw-tsuji, or another\n')
        return
    environment = dict(os.environ, LD_PRELOAD=wanted)
    if not wanted:
        del environment['LD_PRELOAD']
    os.execve(sys.executable, sys.orig_argv, environment)


if sys.platform == 'linux' and sys.executable:
    start()
