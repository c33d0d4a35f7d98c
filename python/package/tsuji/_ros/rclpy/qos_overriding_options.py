"""QoS that parameters override."""

from rcl_interfaces.msg import SetParametersResult as QosCallbackResult
from rclpy.duration import Duration
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSPolicyKind, ReliabilityPolicy


class InvalidQosOverridesError(Exception):
    """What overrides make of a profile is refused."""


class QoSOverridingOptions:
    """Which policies parameters may override, and what checks the outcome."""

    def __init__(self, policy_kinds, *, callback=None, entity_id=None):
        self._policy_kinds, self._callback, self._entity_id = list(policy_kinds), callback, entity_id

    @property
    def policy_kinds(self):
        return self._policy_kinds

    @property
    def callback(self):
        return self._callback

    @property
    def entity_id(self):
        return self._entity_id

    @classmethod
    def with_default_policies(cls, *, callback=None, entity_id=None):
        kinds = (QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY)
        return cls(kinds, callback=callback, entity_id=entity_id)


_POLICIES = {
    QoSPolicyKind.HISTORY: HistoryPolicy,
    QoSPolicyKind.RELIABILITY: ReliabilityPolicy,
    QoSPolicyKind.DURABILITY: DurabilityPolicy,
    QoSPolicyKind.LIVELINESS: LivelinessPolicy,
}
_DURATIONS = (QoSPolicyKind.DEADLINE, QoSPolicyKind.LIFESPAN, QoSPolicyKind.LIVELINESS_LEASE_DURATION)


def _declare_qos_parameters(entity, node, topic, qos, options):
    """Declares the parameters of an endpoint, and overrides its profile by them."""
    from rcl_interfaces.msg import ParameterDescriptor

    of = f"qos_overrides.{topic}.{entity}" + (f"_{options.entity_id}" if options.entity_id else "")
    for kind in options.policy_kinds:
        attribute = kind.name.lower()
        value = getattr(qos, attribute)
        if kind in _POLICIES:
            value = value.short_key
        elif kind in _DURATIONS:
            value = value.nanoseconds
        name = f"{of}.{attribute}"
        if node.has_parameter(name):
            declared = node.get_parameter(name)
        else:
            declared = node.declare_parameter(name, value, ParameterDescriptor(read_only=True))
        value = declared.value
        if declared.type_ is not Parameter.Type.NOT_SET:
            try:
                if kind in _POLICIES:
                    value = _POLICIES[kind].get_from_short_key(value)
                elif kind in _DURATIONS:
                    value = Duration(nanoseconds=value)
                setattr(qos, attribute, value)
            except (AttributeError, KeyError, ValueError) as error:
                raise InvalidQosOverridesError(f"{name}: {declared.value!r} is none") from error
    if options.callback is not None:
        result = options.callback(qos)
        if not result.successful:
            raise InvalidQosOverridesError(f"{of}: provided QoS overrides are not valid: {result.reason}")


__all__ = ["InvalidQosOverridesError", "QoSOverridingOptions", "QosCallbackResult"]
