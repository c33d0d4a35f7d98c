"""The states and transitions of lifecycle_msgs, and what leads where."""

from enum import Enum


class TransitionCallbackReturn(Enum):
    """What a callback of a transition answers. The numbers are those of lifecycle_msgs/msg/Transition."""

    SUCCESS = 97
    FAILURE = 98
    ERROR = 99


UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED = 1, 2, 3, 4
CONFIGURING, CLEANING_UP, SHUTTING_DOWN, ACTIVATING, DEACTIVATING, ERROR_PROCESSING = 10, 11, 12, 13, 14, 15
STATES = {
    0: "unknown",
    UNCONFIGURED: "unconfigured",
    INACTIVE: "inactive",
    ACTIVE: "active",
    FINALIZED: "finalized",
    CONFIGURING: "configuring",
    CLEANING_UP: "cleaningup",
    SHUTTING_DOWN: "shuttingdown",
    ACTIVATING: "activating",
    DEACTIVATING: "deactivating",
    ERROR_PROCESSING: "errorprocessing",
}
# From where, by which number and name, through which state, calling what, to where when it succeeds.
TRANSITIONS = (
    (UNCONFIGURED, 1, "configure", CONFIGURING, "on_configure", INACTIVE),
    (INACTIVE, 2, "cleanup", CLEANING_UP, "on_cleanup", UNCONFIGURED),
    (INACTIVE, 3, "activate", ACTIVATING, "on_activate", ACTIVE),
    (ACTIVE, 4, "deactivate", DEACTIVATING, "on_deactivate", INACTIVE),
    (UNCONFIGURED, 5, "shutdown", SHUTTING_DOWN, "on_shutdown", FINALIZED),
    (INACTIVE, 6, "shutdown", SHUTTING_DOWN, "on_shutdown", FINALIZED),
    (ACTIVE, 7, "shutdown", SHUTTING_DOWN, "on_shutdown", FINALIZED),
)
# How each of those may end: the number is the first of three, of success, failure and error.
OUTCOMES = {CONFIGURING: 10, CLEANING_UP: 20, ACTIVATING: 30, DEACTIVATING: 40, SHUTTING_DOWN: 50, ERROR_PROCESSING: 60}
OUTCOME_NAMES = ("transition_success", "transition_failure", "transition_error")


def graph():
    """All transitions: from where, by which number and name, to where."""
    found = [(start, number, name, through) for start, number, name, through, _, _ in TRANSITIONS]
    for start, _, _, through, _, goal in TRANSITIONS:
        # Of several ways into shutting down, each may fail back.
        ends = (goal, FINALIZED if through == SHUTTING_DOWN else start, ERROR_PROCESSING)
        found += [(through, OUTCOMES[through] + at, OUTCOME_NAMES[at], end) for at, end in enumerate(ends)]
    ends = (UNCONFIGURED, FINALIZED, FINALIZED)
    found += [(ERROR_PROCESSING, 60 + at, OUTCOME_NAMES[at], end) for at, end in enumerate(ends)]
    return list(dict.fromkeys(found))
