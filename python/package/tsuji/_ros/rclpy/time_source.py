"""Lets the clocks of a node follow `/clock` where the parameter `use_sim_time` says so."""

from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.time import Time

CLOCK_TOPIC = "/clock"
USE_SIM_TIME_NAME = "use_sim_time"


class TimeSource:
    """Source of ROS time for the clocks that are attached."""

    def __init__(self, *, node=None):
        self._clocks = []
        self._node = self._subscription = None
        self._is_active = False
        self._last = Time()
        if node is not None:
            self.attach_node(node)

    @property
    def ros_time_is_active(self):
        return self._is_active

    @ros_time_is_active.setter
    def ros_time_is_active(self, enabled):
        self._is_active = enabled
        for clock in self._clocks:
            clock._set_ros_time_is_active(enabled)
        if enabled:
            self._subscribe()
        elif self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _subscribe(self):
        if self._subscription is None and self._node is not None:
            from rosgraph_msgs.msg import Clock

            qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            self._subscription = self._node.create_subscription(Clock, CLOCK_TOPIC, self.clock_callback, qos)

    def attach_node(self, node):
        """Follows the parameter of this node."""
        self.detach_node()
        self._node = node
        if not node.has_parameter(USE_SIM_TIME_NAME):
            node.declare_parameter(USE_SIM_TIME_NAME, False)
        parameter = node.get_parameter(USE_SIM_TIME_NAME)
        if parameter.type_ == Parameter.Type.BOOL:
            self.ros_time_is_active = parameter.value
        else:
            node.get_logger().error(f"Invalid type for parameter {USE_SIM_TIME_NAME} {parameter.type_.name} should be BOOL")
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._follow)

    def detach_node(self):
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
        self._node = self._subscription = None

    def attach_clock(self, clock):
        """Lets this clock follow."""
        clock.set_ros_time_override(self._last)
        clock._set_ros_time_is_active(self._is_active)
        self._clocks.append(clock)

    def clock_callback(self, msg):
        self._last = Time.from_msg(msg.clock)
        for clock in self._clocks:
            clock.set_ros_time_override(self._last)

    def _check(self, parameters):
        from rcl_interfaces.msg import SetParametersResult

        for parameter in parameters:
            if parameter.name == USE_SIM_TIME_NAME and parameter.type_ != Parameter.Type.BOOL:
                reason = f"{USE_SIM_TIME_NAME} parameter set to something besides a bool"
                return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _follow(self, parameters):
        for parameter in parameters:
            if parameter.name == USE_SIM_TIME_NAME and parameter.value != self._is_active:
                self.ros_time_is_active = parameter.value
