"""What a buffer of transforms can do, and the types of data that it can transform."""

from copy import deepcopy

from rclpy.duration import Duration
from std_msgs.msg import Header

NO_WAITING = Duration()

# By their types; all registrations share them.
_transforms = {}
_to_msg = {}
_from_msg = {}
_converts = {}


class BufferInterface:
    """Transforms data of registered types, by the transforms of the class that is derived from it."""

    def __init__(self):
        self.registration = TransformRegistration()

    def transform(self, object_stamped, target_frame, timeout=NO_WAITING, new_type=None):
        """The object in another frame, at its own time; of `new_type` if it is given."""
        do_transform = self.registration.get(type(object_stamped))
        header = object_stamped.header
        result = do_transform(object_stamped, self.lookup_transform(target_frame, header.frame_id, header.stamp, timeout))
        return result if new_type is None else convert(result, new_type)

    def transform_full(self, object_stamped, target_frame, target_time, fixed_frame, timeout=NO_WAITING, new_type=None):
        """The object in another frame and at another time, `fixed_frame` being where it was in between."""
        do_transform = self.registration.get(type(object_stamped))
        header = object_stamped.header
        transform = self.lookup_transform_full(target_frame, target_time, header.frame_id, header.stamp, fixed_frame, timeout)
        result = do_transform(object_stamped, transform)
        return result if new_type is None else convert(result, new_type)

    def lookup_transform(self, target_frame, source_frame, time, timeout=NO_WAITING):
        raise NotImplementedException()

    def lookup_transform_full(self, target_frame, target_time, source_frame, source_time, fixed_frame, timeout=NO_WAITING):
        raise NotImplementedException()

    def can_transform(self, target_frame, source_frame, time, timeout=NO_WAITING):
        raise NotImplementedException()

    def can_transform_full(self, target_frame, target_time, source_frame, source_time, fixed_frame, timeout=NO_WAITING):
        raise NotImplementedException()


class TypeException(Exception):
    """A type that is not registered. Importing the package that registers it helps, such as `tf2_geometry_msgs`."""

    def __init__(self, errstr):
        super().__init__(errstr)
        self.errstr = errstr


class NotImplementedException(Exception):
    """A class that is derived from `BufferInterface` does not have a method."""

    def __init__(self):
        self.errstr = "CanTransform or LookupTransform not implemented"
        super().__init__(self.errstr)


class TransformRegistration:
    """The functions that transform objects, by their types."""

    def print_me(self):
        print(_transforms)

    def add(self, key, callback):
        """Makes `callback(object, transform)` transform objects of the type `key`."""
        _transforms[key] = callback

    def get(self, key):
        return _registered(_transforms, key)


class ConvertRegistration:
    """The functions that convert objects, by their types."""

    def add_from_msg(self, key, callback):
        _from_msg[key] = callback

    def add_to_msg(self, key, callback):
        _to_msg[key] = callback

    def add_convert(self, key, callback):
        """Makes `callback(object)` convert objects; `key` is the pair of the type they have and the one they get."""
        _converts[key] = callback

    def get_from_msg(self, key):
        return _registered(_from_msg, key)

    def get_to_msg(self, key):
        return _registered(_to_msg, key)

    def get_convert(self, key):
        return _registered(_converts, key)


def _registered(functions, key):
    if key not in functions:
        raise TypeException(f"Type {key} is not loaded or supported")
    return functions[key]


def convert(a, b_type):
    """The object as one of another type: directly, or by the message that it stands for."""
    registration = ConvertRegistration()
    try:
        directly = registration.get_convert((type(a), b_type))
    except TypeException:
        if type(a) is b_type:
            return deepcopy(a)
        return registration.get_from_msg(b_type)(registration.get_to_msg(type(a))(a))
    return directly(a)


def Stamped(obj, stamp, frame_id):
    """Gives an object a header."""
    obj.header = Header(frame_id=frame_id, stamp=stamp)
    return obj
