"""The table: which modules have rows, between whom they are run, and what is not met yet."""

MODULES = ['faults', 'topics', 'messages', 'services', 'actions', 'parameters', 'lifecycle', 'events', 'executors', 'graph', 'security']

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


NOT_YET = []


def not_yet(distribution, here, there, module, text):
    """Why a row is known to fail, or nothing."""
    return next((it.reason for it in NOT_YET if it.covers(distribution, here, there, module, text)), None)
