"""Runs programs that are written for rclpy, where no ROS 2 is installed.

    python -m tsuji.rclpy script.py [ARGUMENT…]
    python -m tsuji.rclpy -m package.module [ARGUMENT…]

`--interfaces FOLDER`, before the script, adds packages of message definitions. In a program of one's own, `tsuji.rclpy.install()` makes
`import rclpy` and `from std_msgs.msg import String` find tsuji, and so does the rest of the program.
"""

import importlib
import importlib.util
import os
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from . import _tsuji

_PACKAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_ros")


class _Finder:
    """Finds the packages that tsuji has in the place of those of ROS 2, and packages of messages, whatever else is on the path."""

    # By package and kind, the types by the modules that rosidl makes for them, such as `_nav_sat_fix`.
    types = {}
    kinds = ("msg", "srv", "action")

    @classmethod
    def look(cls):
        """Looks for the types that there are."""
        cls.types = {}
        for full in _tsuji.interface_names():
            package, kind, name = full.split("/")
            cls.types.setdefault(package, {}).setdefault(kind, {})["_" + _snake(name)] = name

    @classmethod
    def find_spec(cls, name, path=None, _target=None):
        package, _, rest = name.partition(".")
        if not rest and os.path.isdir(os.path.join(_PACKAGES, package)):
            return PathFinder.find_spec(name, [_PACKAGES])
        if package not in cls.types:
            return None
        if not rest:
            # What else is in a package of that name, such as modules, is found too.
            spec = ModuleSpec(name, _Package(), is_package=True)
            spec.submodule_search_locations = [found for it in sys.path if os.path.isdir(found := os.path.join(it or ".", package))]
            return spec
        kind, _, below = rest.partition(".")
        modules = cls.types[package].get(kind, {})
        if kind not in cls.kinds or (below and below not in modules):
            return None
        names = [modules[below]] if below else list(modules.values())
        return ModuleSpec(name, _Interfaces(f"tsuji.interfaces.{package}.{kind}", names), is_package=not below)


def _snake(name):
    """As rosidl makes it of `NavSatFix`."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()


class _Package:
    def create_module(self, spec):
        return ModuleType(spec.name)

    def exec_module(self, module):
        pass


class _Interfaces:
    """The modules `msg`, `srv` and `action` of a package, and those below them that rosidl makes for each type, such as `_string`."""

    def __init__(self, name, names):
        self.name, self.names = name, names

    def create_module(self, spec):
        module = ModuleType(spec.name)
        module.__getattr__ = self.get
        module.__all__ = self.names
        module.__dir__ = lambda: module.__all__
        return module

    def exec_module(self, module):
        pass

    def get(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.name), name)


def install(*interface_folders):
    """Makes `import rclpy` and imports of messages find what tsuji has for them, in this whole process. Sequences of numbers in messages
    are arrays of the module `array` from then on, as rclpy has them."""
    if "rclpy" in sys.modules and not getattr(sys.modules["rclpy"], "__file__", "").startswith(_PACKAGES):
        raise ImportError("rclpy is imported already; tsuji.rclpy.install() comes before that")
    for folder in interface_folders:
        _tsuji.add_interface_folder(folder)
    _Finder.look()
    _tsuji.use_plain_sequences()
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def main(arguments=None):
    """What `python -m tsuji.rclpy` does."""
    import argparse
    import runpy

    parser = argparse.ArgumentParser(
        prog="python -m tsuji.rclpy",
        description="Runs a program that is written for rclpy, where no ROS 2 is installed.",
        epilog="example: python -m tsuji.rclpy talker.py --ros-args -r chatter:=news",
    )
    parser.add_argument(
        "--interfaces", metavar="FOLDER", action="append", default=[], help="look for packages of message definitions below this folder too"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, as with `python -m`")
    parser.add_argument("program", metavar="PROGRAM", help="a file, or a folder or archive with a __main__.py")
    # Else it is told to be missing where the program is.
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="of the program").required = False
    asked = parser.parse_args(arguments)
    try:
        install(*asked.interfaces)
    except (ImportError, LookupError) as error:
        parser.error(str(error))
    sys.argv = [asked.program, *asked.arguments]
    if asked.module:
        sys.path.insert(0, os.getcwd())
        try:
            found = importlib.util.find_spec(asked.program)
        except ModuleNotFoundError:
            found = None
        if found is None:
            parser.error(f"{asked.program}: no such module")
        runpy.run_module(asked.program, run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(asked.program):
        parser.error(f"{asked.program}: no such file")
    if os.path.isfile(asked.program):
        sys.path.insert(0, os.path.dirname(os.path.abspath(asked.program)))
    runpy.run_path(asked.program, run_name="__main__")


if __name__ == "__main__":
    main()
