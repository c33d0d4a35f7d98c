"""The classes of messages, by the names that ROS 2 gives them: `from tsuji.interfaces.sensor_msgs.msg import Image`.

Each is made when it is asked for: of the types that ship, those of the packages of `AMENT_PREFIX_PATH`, and those of
`tsuji.add_interface_folder()`.
"""

import sys
from types import ModuleType

from . import _tsuji

__path__ = []


class _Kind(ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self._package}/{self._kind}/{name}"
        try:
            made = _MAKES[self._kind](full)
        except LookupError as error:
            raise AttributeError(str(error)) from None
        setattr(self, name, made)
        return made


def _base(name):
    import tsuji

    return getattr(tsuji, name)


def _service(full):
    request, response = _tsuji.load_service(full)
    return type(full.rsplit("/", 1)[1], (_base("Service"),), {"Request": request, "Response": response, "_service": full, "__slots__": ()})


def _action(full):
    goal, result, feedback = _tsuji.load_action(full)
    classes = {"Goal": goal, "Result": result, "Feedback": feedback, "_action": full, "__slots__": ()}
    return type(full.rsplit("/", 1)[1], (_base("Action"),), classes)


_MAKES = {"msg": _tsuji.load, "srv": _service, "action": _action}


class _Finder:
    """Makes a module of each package, and of its `msg`, `srv` and `action`."""

    @staticmethod
    def find_spec(name, _path=None, _target=None):
        from importlib.machinery import ModuleSpec

        parts = name.split(".")
        if parts[:2] != ["tsuji", "interfaces"] or not 3 <= len(parts) <= 4 or (len(parts) == 4 and parts[3] not in _MAKES):
            return None
        return ModuleSpec(name, _Loader(), is_package=len(parts) == 3)


class _Loader:
    def create_module(self, spec):
        parts = spec.name.split(".")
        if len(parts) == 3:
            return ModuleType(spec.name)
        module = _Kind(spec.name)
        module._package, module._kind = parts[2:]
        return module

    def exec_module(self, _module):
        pass


sys.meta_path.append(_Finder)
