"""Loggers, and from which severity on they are heard."""

import os
from pathlib import Path

from rclpy.impl import rcutils_logger
from rclpy.impl.logging_severity import LoggingSeverity
from rclpy.impl.rcutils_logger import RcutilsLogger


def get_logger(name):
    """A logger by its name."""
    if not name:
        raise ValueError("Logger name must not be empty.")
    return RcutilsLogger(name=name)


def initialize():
    pass


def shutdown():
    pass


def clear_config():
    """Forgets the levels of all loggers."""
    rcutils_logger.set_levels({})


def set_logger_level(name, level, detailed_error=False):
    """From which severity on a logger, and those below it, are heard."""
    rcutils_logger.set_level(name, LoggingSeverity(level))
    return True


def get_logger_effective_level(name):
    return LoggingSeverity(rcutils_logger.level_of(name))


def get_logger_level(name):
    """What was set for this very logger."""
    return LoggingSeverity(rcutils_logger.own_level_of(name))


def get_logging_severity_from_string(log_severity):
    try:
        return LoggingSeverity[log_severity.upper()]
    except KeyError:
        raise RuntimeError(f"log severity {log_severity!r}; allowed: {', '.join(LoggingSeverity.__members__)}") from None


def get_logging_directory():
    """Where logs would be: tsuji writes none to files."""
    home = Path(os.environ.get("ROS_HOME") or Path.home() / ".ros")
    return Path(os.environ.get("ROS_LOG_DIR") or home / "log")
