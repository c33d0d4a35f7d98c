"""The table: which modules have rows, between whom they are run, and what is not met yet."""

MODULES = ['faults', 'topics', 'messages', 'services', 'actions', 'parameters', 'lifecycle', 'events', 'executors', 'graph']

TSUJI, FASTRTPS = 'rmw_tsuji', 'rmw_fastrtps_cpp'
# The middleware of this process and of the other one.
PEERS = [(TSUJI, TSUJI), (TSUJI, FASTRTPS), (FASTRTPS, TSUJI)]
# What shows that a row itself is right: run by name alone.
CONTROL = [(FASTRTPS, FASTRTPS)]

ANY = '*'
MIXED = 'mixed'


class NotYet:
    """Rows that are known to fail. One of them that passes fails the run: then it is to be taken off this list."""

    def __init__(self, distribution, peers, module, rows, reason):
        self.distribution, self.peers, self.module, self.rows, self.reason = distribution, peers, module, rows, reason

    def covers(self, distribution, here, there, module, text):
        return (
            TSUJI in (here, there)
            and self.distribution in (ANY, distribution)
            and (self.peers == ANY or (self.peers == MIXED and here != there) or self.peers == (here, there))
            and self.module in (ANY, module)
            and (self.rows == ANY or text in self.rows))


UNSEEN = 'a subscription of tsuji to which nobody publishes is not shown to other nodes, unless the policy says readers="at_once"'
NOT_YET = [
    NotYet(ANY, (FASTRTPS, TSUJI), 'graph',
           ['topics and types', 'endpoints with type hash, QoS and node', 'services and clients', 'what a node has'], UNSEEN),
    NotYet(ANY, (FASTRTPS, TSUJI), 'events', ['reliability that does not fit', 'durability that does not fit'], UNSEEN),
    NotYet(ANY, (FASTRTPS, TSUJI), 'events', ['liveliness by topic, lost and back'],
           'a subscription of tsuji is not told that a publisher of Fast DDS no longer asserts its liveliness'),
    NotYet('kilted', MIXED, 'messages', ['ComplexNestedKey', 'KeyedLong', 'KeyedString'],
           'types with keys, which rmw_fastrtps_cpp announces so since Kilted, do not meet those of tsuji'),
    NotYet(ANY, (TSUJI, FASTRTPS), 'topics', ['volatile to a late joiner'],
           'a foreign volatile subscription that is the first gets what is kept for late joiners'),
]


def not_yet(distribution, here, there, module, text):
    """Why a row is known to fail, or nothing."""
    return next((it.reason for it in NOT_YET if it.covers(distribution, here, there, module, text)), None)
