"""What SIGINT and SIGTERM do: they shut the default context down. SIGINT also raises `KeyboardInterrupt`, as Python has it."""

import signal
import threading
from enum import IntFlag


class SignalHandlerOptions(IntFlag):
    NO = 0
    SIGINT = 1
    SIGTERM = 2
    ALL = 3


_before = {}
_SIGNALS = {SignalHandlerOptions.SIGINT: signal.SIGINT, SignalHandlerOptions.SIGTERM: signal.SIGTERM}


def install_signal_handlers(options=SignalHandlerOptions.ALL):
    """Handles these signals, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    for option, number in _SIGNALS.items():
        before = signal.getsignal(number)
        # A signal that was ignored at the start stays ignored.
        if options & option and number not in _before and before is not signal.SIG_IGN:
            _before[number] = before
            signal.signal(number, _handle)


def uninstall_signal_handlers():
    """Lets signals do what they did before."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, before in list(_before.items()):
        if signal.getsignal(number) is _handle:
            signal.signal(number, before)
        del _before[number]


def get_current_signal_handlers_options():
    """Which signals are handled."""
    return SignalHandlerOptions(sum(option for option, number in _SIGNALS.items() if number in _before))


def _handle(number, frame):
    from rclpy.utilities import get_default_context

    before = _before.get(number)
    get_default_context().try_shutdown()
    if callable(before):
        before(number, frame)
