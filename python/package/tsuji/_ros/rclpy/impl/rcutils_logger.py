"""Loggers: what they say goes to the terminal in the form of ROS 2, and to `/rosout` where they are of a node."""

import sys
import threading
import time
import weakref

from rclpy.impl.logging_severity import LoggingSeverity

# Nodes, by the names of their loggers.
_nodes = weakref.WeakValueDictionary()
_levels = {}
# A signal handler may log while the same thread does.
_lock = threading.RLock()
_SEVERITIES = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "FATAL"}


def add_node(name, node):
    """Lets loggers of this name and below it speak by the node."""
    with _lock:
        _nodes[name] = node
        levels = dict(_levels)
    for logger, level in levels.items():
        node._raw.set_log_level(logger, level)


def set_level(name, level):
    with _lock:
        if level:
            _levels[name] = int(level)
        else:
            _levels.pop(name, None)
        nodes = list(_nodes.values())
    for node in nodes:
        node._raw.set_log_level(name, int(level))


def set_levels(levels):
    for name in list(_levels):
        if name not in levels:
            set_level(name, 0)
    for name, level in levels.items():
        set_level(name, level)


def own_level_of(name):
    return _levels.get(name, 0)


def level_of(name):
    """From which severity on it is heard: what was set for it or above it, what the arguments say, or INFO."""
    node = _node_of(name)
    if node is not None:
        return node._raw.log_level(name)
    for ancestor in _ancestors(name):
        if ancestor in _levels:
            return _levels[ancestor]
    return _levels.get("", 20)


def _ancestors(name):
    while name:
        yield name
        name = name.rpartition(".")[0]


def _node_of(name):
    """The node that the logger is of; any where it is of none, for its arguments; None where there is no node."""
    with _lock:
        for ancestor in _ancestors(name):
            node = _nodes.get(ancestor)
            if node is not None:
                return node
        return next(iter(_nodes.values()), None)


def _write(name, severity, text):
    node = _node_of(name)
    if node is not None:
        node._raw.log(name, severity, text)
    elif level_of(name) <= severity:
        now = time.time_ns()
        print(f"[{_SEVERITIES[severity]}] [{now // 10**9}.{now % 10**9:09}] [{name}]: {text}", file=sys.stderr)


class RcutilsLogger:
    """Says lines by a name."""

    def __init__(self, name=""):
        self.name = name
        # What the filters know of each place in a program.
        self._contexts = {}

    def get_child(self, name):
        """The logger of this name below this one."""
        if not name:
            raise ValueError("Need non-empty child name.")
        child = RcutilsLogger(f"{self.name}.{name}" if self.name else name)
        return child

    def set_level(self, level):
        """From which severity on it, and those below it, are heard."""
        set_level(self.name, LoggingSeverity(level))
        return True

    def get_effective_level(self):
        return LoggingSeverity(level_of(self.name))

    def is_enabled_for(self, severity):
        return level_of(self.name) <= int(severity)

    def log(self, message, severity, **filters):
        """Says a line, unless the filters `once`, `skip_first` or `throttle_duration_sec` keep it back. Returns whether it is said."""
        name = filters.pop("name", None) or self.name
        severity = int(severity)
        if severity not in _SEVERITIES:
            raise ValueError(f"severity {severity}; allowed: {', '.join(map(str, _SEVERITIES))}")
        if filters and not self._lets_pass(severity, filters):
            return False
        if level_of(name) > severity:
            return False
        _write(name, severity, str(message))
        return True

    def _lets_pass(self, severity, filters):
        unknown = set(filters) - {"once", "skip_first", "throttle_duration_sec", "throttle_time_source_type"}
        if unknown:
            raise TypeError(
                f"{sorted(unknown)[0]}: no filter of logs; allowed: once, skip_first, throttle_duration_sec, throttle_time_source_type"
            )
        if "throttle_time_source_type" in filters and not filters.get("throttle_duration_sec"):
            raise TypeError("required parameter 'throttle_duration_sec' is missing from the log call")
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        place = (frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)
        known = self._contexts.setdefault(place, {"severity": severity, "filters": tuple(sorted(filters))})
        if known["severity"] != severity:
            raise ValueError("Logger severity cannot be changed between calls.")
        if known["filters"] != tuple(sorted(filters)):
            raise ValueError("Logging filters cannot be changed between calls.")
        if filters.get("throttle_duration_sec"):
            clock = filters.get("throttle_time_source_type")
            now = clock.now().nanoseconds / 1e9 if hasattr(clock, "now") else time.monotonic()
            last = known.get("said")
            if last is not None and 0 <= now - last < filters["throttle_duration_sec"]:
                return False
            known["said"] = now
        if filters.get("skip_first") and not known.get("skipped"):
            known["skipped"] = True
            return False
        if filters.get("once"):
            if known.get("once"):
                return False
            known["once"] = True
        return True

    def debug(self, message, **filters):
        return self.log(message, 10, **filters)

    def info(self, message, **filters):
        return self.log(message, 20, **filters)

    def warning(self, message, **filters):
        return self.log(message, 30, **filters)

    warn = warning

    def error(self, message, **filters):
        return self.log(message, 40, **filters)

    def fatal(self, message, **filters):
        return self.log(message, 50, **filters)
