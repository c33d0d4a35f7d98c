"""Transforms messages of geometry_msgs. Importing it lets `tf2_ros.Buffer.transform` take them."""

from geometry_msgs.msg import (
    Point32,
    PointStamped,
    PolygonStamped,
    Pose,
    PoseStamped,
    PoseWithCovarianceStamped,
    Vector3Stamped,
    Wrench,
    WrenchStamped,
)
from tf2_py import _rotation
from tf2_ros import ConvertRegistration, TransformRegistration


def to_msg_msg(msg):
    return msg


def from_msg_msg(msg):
    return msg


def do_transform_point(point, transform):
    """A `PointStamped` in the frame that the transform leads to."""
    result = PointStamped(header=transform.header)
    _set(result.point, _moved(point.point, transform))
    return result


def do_transform_vector3(vector3, transform):
    """A `Vector3Stamped`, which is only turned."""
    result = Vector3Stamped(header=transform.header)
    _set(result.vector, _turned(vector3.vector, transform))
    return result


def do_transform_pose(pose, transform):
    """A `Pose`, which has no header. For a `PoseStamped` there is `do_transform_pose_stamped`."""
    result = Pose()
    _set(result.position, _moved(pose.position, transform))
    x, y, z, w = _rotation.multiply(_quaternion(transform.transform.rotation), _quaternion(pose.orientation))
    sign = -1.0 if w < 0.0 else 1.0
    turn = result.orientation
    turn.x, turn.y, turn.z, turn.w = sign * x, sign * y, sign * z, sign * w
    return result


def do_transform_pose_stamped(pose, transform):
    """A `PoseStamped` in the frame that the transform leads to."""
    return PoseStamped(header=transform.header, pose=do_transform_pose(pose.pose, transform))


def do_transform_pose_with_covariance_stamped(pose, transform):
    """A `PoseWithCovarianceStamped` in the frame that the transform leads to."""
    result = PoseWithCovarianceStamped(header=transform.header)
    result.pose.pose = do_transform_pose(pose.pose.pose, transform)
    result.pose.covariance = transform_covariance(pose.pose.covariance, transform)
    return result


def do_transform_polygon_stamped(polygon, transform):
    """A `PolygonStamped` in the frame that the transform leads to."""
    result = PolygonStamped(header=transform.header)
    for point in polygon.polygon.points:
        x, y, z = _moved(point, transform)
        result.polygon.points.append(Point32(x=x, y=y, z=z))
    return result


def do_transform_wrench(wrench, transform):
    """A `WrenchStamped`, or a `Wrench`, at the origin of the frame that the transform leads to."""
    if hasattr(wrench, "wrench"):
        return WrenchStamped(header=transform.header, wrench=do_transform_wrench(wrench.wrench, transform))
    force = _turned(wrench.force, transform)
    lever = _rotation.cross(_vector(transform.transform.translation), force)
    result = Wrench()
    _set(result.force, force)
    _set(result.torque, _rotation.add(_turned(wrench.torque, transform), lever))
    return result


def transform_covariance(cov_in, transform):
    """The 36 numbers of a covariance of position and orientation, turned."""
    rotation = _quaternion(transform.transform.rotation)
    # R C Rᵀ: the rows of each 3 × 3 block are turned, and then its columns.
    rows = [cov_in[row * 6 + start : row * 6 + start + 3] for row in range(6) for start in (0, 3)]
    turned = [number for row in rows for number in _rotation.rotate(rotation, tuple(row))]
    result = [0.0] * 36
    for top in (0, 3):
        for column in range(6):
            down = _rotation.rotate(rotation, tuple(turned[(top + row) * 6 + column] for row in range(3)))
            for row in range(3):
                result[(top + row) * 6 + column] = down[row]
    return result


def _moved(point, transform):
    return _rotation.add(_turned(point, transform), _vector(transform.transform.translation))


def _turned(vector, transform):
    return _rotation.rotate(_quaternion(transform.transform.rotation), _vector(vector))


def _vector(message):
    return message.x, message.y, message.z


def _quaternion(message):
    rotation = message.x, message.y, message.z, message.w
    # What nobody has set in ROS 1 is zero.
    return _rotation.normalize(rotation) if any(rotation) else _rotation.IDENTITY


def _set(message, vector):
    message.x, message.y, message.z = vector


for _type, _function in (
    (PointStamped, do_transform_point),
    (Vector3Stamped, do_transform_vector3),
    (PoseStamped, do_transform_pose_stamped),
    (PoseWithCovarianceStamped, do_transform_pose_with_covariance_stamped),
    (PolygonStamped, do_transform_polygon_stamped),
    (WrenchStamped, do_transform_wrench),
):
    TransformRegistration().add(_type, _function)
    ConvertRegistration().add_to_msg(_type, to_msg_msg)
    ConvertRegistration().add_from_msg(_type, from_msg_msg)
