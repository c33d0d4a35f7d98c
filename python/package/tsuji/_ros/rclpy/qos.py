"""Quality of service, in the words of rclpy."""

from enum import Enum, IntEnum

import tsuji
from rclpy.duration import Duration, Infinite


class QoSPolicyKind(IntEnum):
    INVALID = 1
    DURABILITY = 2
    DEADLINE = 4
    LIVELINESS = 8
    RELIABILITY = 16
    HISTORY = 32
    LIFESPAN = 64
    DEPTH = 128
    LIVELINESS_LEASE_DURATION = 256
    AVOID_ROS_NAMESPACE_CONVENTIONS = 512


def qos_policy_name_from_kind(policy_kind):
    return QoSPolicyKind(policy_kind).name


class InvalidQoSProfileException(Exception):
    """Settings that make no profile."""

    def __init__(self, *args):
        super().__init__("Invalid QoSProfile", *args)


class QoSPolicyEnum(IntEnum):
    """Base of the policies."""

    @classmethod
    def short_keys(cls):
        return [name.lower() for name in cls.__members__ if not name.startswith("RMW")]

    @classmethod
    def get_from_short_key(cls, name):
        return cls[name.upper()]

    @property
    def short_key(self):
        return self.name.lower()


class HistoryPolicy(QoSPolicyEnum):
    SYSTEM_DEFAULT = 0
    KEEP_LAST = 1
    KEEP_ALL = 2
    UNKNOWN = 3


class ReliabilityPolicy(QoSPolicyEnum):
    SYSTEM_DEFAULT = 0
    RELIABLE = 1
    BEST_EFFORT = 2
    UNKNOWN = 3
    BEST_AVAILABLE = 4


class DurabilityPolicy(QoSPolicyEnum):
    SYSTEM_DEFAULT = 0
    TRANSIENT_LOCAL = 1
    VOLATILE = 2
    UNKNOWN = 3
    BEST_AVAILABLE = 4


class LivelinessPolicy(QoSPolicyEnum):
    SYSTEM_DEFAULT = 0
    AUTOMATIC = 1
    MANUAL_BY_TOPIC = 3
    UNKNOWN = 4
    BEST_AVAILABLE = 5


# The names of rmw, by which older programs know them.
for _policy, _prefix in (
    (HistoryPolicy, "RMW_QOS_POLICY_HISTORY"),
    (ReliabilityPolicy, "RMW_QOS_POLICY_RELIABILITY"),
    (DurabilityPolicy, "RMW_QOS_POLICY_DURABILITY"),
    (LivelinessPolicy, "RMW_QOS_POLICY_LIVELINESS"),
):
    for _member in _policy:
        # An IntEnum lets nobody set a member, but this is one more name of one.
        type.__setattr__(_policy, f"{_prefix}_{_member.name}", _member)

QoSHistoryPolicy, QoSReliabilityPolicy = HistoryPolicy, ReliabilityPolicy
QoSDurabilityPolicy, QoSLivelinessPolicy = DurabilityPolicy, LivelinessPolicy

# As rmw says them.
DeadlineBestAvailable = Duration(nanoseconds=2**63 - 2)
LivelinessLeaseDurationeBestAvailable = DeadlineBestAvailable

_DEFAULTS = {
    "history": HistoryPolicy.KEEP_LAST,
    "depth": 10,
    "reliability": ReliabilityPolicy.RELIABLE,
    "durability": DurabilityPolicy.VOLATILE,
    "lifespan": Duration(),
    "deadline": Duration(),
    "liveliness": LivelinessPolicy.SYSTEM_DEFAULT,
    "liveliness_lease_duration": Duration(),
    "avoid_ros_namespace_conventions": False,
}
_POLICIES = {
    "history": HistoryPolicy,
    "reliability": ReliabilityPolicy,
    "durability": DurabilityPolicy,
    "liveliness": LivelinessPolicy,
}
_DURATIONS = ("lifespan", "deadline", "liveliness_lease_duration")


class QoSProfile:
    """Quality of service of an endpoint."""

    __slots__ = tuple("_" + name for name in _DEFAULTS)

    def __init__(self, **settings):
        assert all(name in _DEFAULTS for name in settings), f"Invalid arguments passed to constructor: {settings.keys()}"
        if "history" not in settings:
            if "depth" not in settings:
                raise InvalidQoSProfileException("History and/or depth settings are required.")
        elif settings["history"] == HistoryPolicy.KEEP_LAST and "depth" not in settings:
            raise InvalidQoSProfileException("History set to KEEP_LAST without a depth setting.")
        for name, default in _DEFAULTS.items():
            setattr(self, name, settings.get(name, default))

    def get_c_qos_profile(self):
        """The profile as tsuji has it."""
        return self._to_tsuji()

    def _to_tsuji(self, endpoints=()):
        """As tsuji has it. `endpoints` are the profiles that are there at the other end, for what is to be the best available."""
        others = list(endpoints)
        reliability, durability = self._reliability, self._durability
        if reliability is ReliabilityPolicy.BEST_AVAILABLE:
            unreliable = any(it.reliability is ReliabilityPolicy.BEST_EFFORT for it in others)
            reliability = ReliabilityPolicy.BEST_EFFORT if unreliable else ReliabilityPolicy.RELIABLE
        if durability is DurabilityPolicy.BEST_AVAILABLE:
            latched = others and all(it.durability is DurabilityPolicy.TRANSIENT_LOCAL for it in others)
            durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
        return tsuji.QoS(
            max(self._depth, 1),
            history="keep_all" if self._history is HistoryPolicy.KEEP_ALL else "keep_last",
            reliability="best_effort" if reliability is ReliabilityPolicy.BEST_EFFORT else "reliable",
            durability="transient_local" if durability is DurabilityPolicy.TRANSIENT_LOCAL else "volatile",
            deadline=_seconds(self._deadline),
            lifespan=_seconds(self._lifespan),
            liveliness="manual_by_topic" if self._liveliness is LivelinessPolicy.MANUAL_BY_TOPIC else "automatic",
            liveliness_lease_duration=_seconds(self._liveliness_lease_duration),
        )

    @classmethod
    def _of_tsuji(cls, qos):
        return cls(
            history=HistoryPolicy[qos.history.upper()],
            depth=qos.depth,
            reliability=ReliabilityPolicy[qos.reliability.upper()],
            durability=DurabilityPolicy[qos.durability.upper()],
            lifespan=_duration(qos.lifespan),
            deadline=_duration(qos.deadline),
            liveliness=LivelinessPolicy[qos.liveliness.upper()],
            liveliness_lease_duration=_duration(qos.liveliness_lease_duration),
        )

    def __eq__(self, other):
        if not isinstance(other, QoSProfile):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self):
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __str__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in _DEFAULTS)})"

    __repr__ = __str__


def _seconds(duration):
    """Seconds of a period; None of one that is not given or infinite."""
    nanoseconds = duration.nanoseconds
    return None if nanoseconds <= 0 or DeadlineBestAvailable.nanoseconds <= nanoseconds else nanoseconds / 1e9


def _duration(seconds):
    return Infinite if seconds is None else Duration(nanoseconds=round(seconds * 1e9))


def _property(name):
    attribute = "_" + name

    def get(self):
        return getattr(self, attribute)

    def put(self, value):
        if name in _POLICIES:
            value = _POLICIES[name](value)
        elif name in _DURATIONS:
            assert isinstance(value, Duration), f"{name}: {value!r}; allowed: a Duration"
        elif name == "depth":
            assert isinstance(value, int), f"depth: {value!r}; allowed: an int"
            if value < 0:
                raise ValueError("depth must be greater than or equal to zero")
        else:
            assert isinstance(value, bool), f"{name}: {value!r}; allowed: a bool"
        setattr(self, attribute, value)

    return property(get, put)


for _name in _DEFAULTS:
    setattr(QoSProfile, _name, _property(_name))

qos_profile_default = QoSProfile(depth=10)
qos_profile_unknown = QoSProfile(
    history=HistoryPolicy.UNKNOWN,
    depth=0,
    reliability=ReliabilityPolicy.UNKNOWN,
    durability=DurabilityPolicy.UNKNOWN,
    liveliness=LivelinessPolicy.UNKNOWN,
)
qos_profile_system_default = QoSProfile(
    history=HistoryPolicy.SYSTEM_DEFAULT,
    depth=0,
    reliability=ReliabilityPolicy.SYSTEM_DEFAULT,
    durability=DurabilityPolicy.SYSTEM_DEFAULT,
)
qos_profile_sensor_data = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
qos_profile_services_default = QoSProfile(depth=10)
qos_profile_parameters = QoSProfile(depth=1000)
qos_profile_parameter_events = QoSProfile(depth=1000)
qos_profile_action_status_default = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
qos_profile_best_available = QoSProfile(
    depth=10,
    reliability=ReliabilityPolicy.BEST_AVAILABLE,
    durability=DurabilityPolicy.BEST_AVAILABLE,
    liveliness=LivelinessPolicy.BEST_AVAILABLE,
    deadline=DeadlineBestAvailable,
    liveliness_lease_duration=LivelinessLeaseDurationeBestAvailable,
)
qos_profile_rosout_default = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL, lifespan=Duration(seconds=10))


class QoSPresetProfiles(Enum):
    UNKNOWN = qos_profile_unknown
    DEFAULT = qos_profile_default
    SYSTEM_DEFAULT = qos_profile_system_default
    SENSOR_DATA = qos_profile_sensor_data
    SERVICES_DEFAULT = qos_profile_services_default
    PARAMETERS = qos_profile_parameters
    PARAMETER_EVENTS = qos_profile_parameter_events
    ACTION_STATUS_DEFAULT = qos_profile_action_status_default
    BEST_AVAILABLE = qos_profile_best_available

    @classmethod
    def short_keys(cls):
        return [name.lower() for name in cls.__members__]

    @classmethod
    def get_from_short_key(cls, name):
        return cls[name.upper()].value


class QoSCompatibility(IntEnum):
    OK = 0
    WARNING = 1
    ERROR = 2


def qos_check_compatible(publisher_qos, subscription_qos):
    """Whether such a publisher and subscription match, and why not."""
    wrong, unsure = [], []
    for name, weak in (("reliability", ReliabilityPolicy.BEST_EFFORT), ("durability", DurabilityPolicy.VOLATILE)):
        offered, asked = getattr(publisher_qos, name), getattr(subscription_qos, name)
        if any(it.name in ("SYSTEM_DEFAULT", "UNKNOWN") for it in (offered, asked)):
            unsure.append(name)
        elif offered is weak and asked is not weak and asked.name != "BEST_AVAILABLE":
            wrong.append(
                f"ERROR: {weak.name.replace('_', ' ').capitalize()} publisher and {asked.name.lower().replace('_', ' ')} subscription;"
            )
    for name in ("deadline", "liveliness_lease_duration"):
        offered, asked = _seconds(getattr(publisher_qos, name)), _seconds(getattr(subscription_qos, name))
        if asked is not None and (offered is None or asked < offered):
            wrong.append(f"ERROR: Subscription's {name.replace('_', ' ')} is less than the publisher's;")
    if publisher_qos.liveliness is LivelinessPolicy.AUTOMATIC and subscription_qos.liveliness is LivelinessPolicy.MANUAL_BY_TOPIC:
        wrong.append("ERROR: Publisher's liveliness is automatic and subscription's is manual by topic;")
    if wrong:
        return QoSCompatibility.ERROR, "".join(wrong)
    if unsure:
        return QoSCompatibility.WARNING, "".join(f"WARNING: {name} is the system's default or unknown;" for name in unsure)
    return QoSCompatibility.OK, ""
