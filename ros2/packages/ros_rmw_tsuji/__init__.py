"""Puts rmw_tsuji under the ROS 2 of wheels where RMW_IMPLEMENTATION says so.

The wheels have no rmw_implementation that would load a middleware by its name: rcl is linked to rmw_fastrtps_cpp. So the
library is loaded before it, by LD_PRELOAD, which counts only from the start of a process. Python imports this module
when it starts, before the module that starts Python anew with the paths of ROS 2.
"""

import os
import sys

NAME = 'rmw_tsuji'

# Says which process was started anew, and with what, so that it is not done again where it had no effect.
STARTED = 'ROS_RMW_TSUJI_STARTED'


def library():
    """Return the path of librmw_tsuji.so, whether it is there or not."""
    # This file is PREFIX/lib/pythonX.Y/site-packages/ros_rmw_tsuji/__init__.py, whatever Python runs it.
    prefix = os.path.abspath(__file__)
    for _ in range(5):
        prefix = os.path.dirname(prefix)
    return os.path.join(prefix, 'lib', 'librmw_tsuji.so')


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
    # Python itself goes on in each of these cases: pip, which can mend it, is Python too.
    is_under = os.environ.get('RMW_IMPLEMENTATION') == NAME
    if is_under and not os.path.exists(path):
        return warn(f'{path} is not there; allowed: pip install ros-rmw-tsuji, or another')
    if is_under and any(it in path for it in ' :'):
        return warn(f'LD_PRELOAD takes no path with a space or a colon, as {path} has; allowed: another folder')
    started = f'{os.getpid()} {wanted}'
    if os.environ.get(STARTED) == started:
        return warn('LD_PRELOAD has no effect on this program')
    environment = dict(os.environ, LD_PRELOAD=wanted, **{STARTED: started})
    if not wanted:
        del environment['LD_PRELOAD']
    os.execve(sys.executable, sys.orig_argv, environment)


def warn(why):
    """Tell why this process goes on as it is."""
    sys.stderr.write(f'RMW_IMPLEMENTATION is {os.environ.get("RMW_IMPLEMENTATION", "not set")}, and {why}\n')


def is_python():
    """Return whether this process is Python, and not a program that has it inside."""
    try:
        return bool(sys.orig_argv) and os.path.samefile('/proc/self/exe', sys.executable)
    except OSError:
        return False


if sys.platform == 'linux' and sys.executable and is_python():
    start()
