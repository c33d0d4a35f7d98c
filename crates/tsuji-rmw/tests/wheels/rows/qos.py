"""QoS profiles as data that two processes can hand each other."""

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy


def qos(*, reliability='RELIABLE', durability='VOLATILE', history='KEEP_LAST', depth=100, **times):
    """What `profile` makes a profile of. Times are `deadline`, `lifespan` and `lease` in seconds; `liveliness` is a policy."""
    return dict(reliability=reliability, durability=durability, history=history, depth=depth, **times)


def profile(words):
    """The profile of rclpy for the words."""
    made = QoSProfile(
        history=HistoryPolicy[words['history']], depth=words['depth'],
        reliability=ReliabilityPolicy[words['reliability']], durability=DurabilityPolicy[words['durability']])
    if 'liveliness' in words:
        made.liveliness = LivelinessPolicy[words['liveliness']]
    for name, attribute in ('deadline', 'deadline'), ('lifespan', 'lifespan'), ('lease', 'liveliness_lease_duration'):
        if name in words:
            setattr(made, attribute, Duration(nanoseconds=int(words[name] * 1e9)))
    return made


LATCHED = qos(durability='TRANSIENT_LOCAL')
BEST_EFFORT = qos(reliability='BEST_EFFORT')
EVERY = [
    (f'{reliability}, {durability}, {history}'.lower().replace('_', ' '),
     qos(reliability=reliability, durability=durability, history=history))
    for reliability in ('RELIABLE', 'BEST_EFFORT')
    for durability in ('VOLATILE', 'TRANSIENT_LOCAL')
    for history in ('KEEP_LAST', 'KEEP_ALL')
]
