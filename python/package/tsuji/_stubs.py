"""The type stubs of messages, as `python -m tsuji.stubs` writes them."""

import keyword
import pathlib

from . import _tsuji

# Where editors look.
HOME = pathlib.Path(__file__).parent / "interfaces"

_HEAD = '''"""The {kind} of {package}, as `tsuji.interfaces` makes them."""

from collections.abc import Sequence as _Sequence
from typing import ClassVar as _ClassVar

import numpy as _numpy
import tsuji as _tsuji
from tsuji._typing import Numbers as _Numbers, NumbersIn as _NumbersIn
'''

_NUMBERS = {
    "bool": "bool",
    "uint8": "int",
    "int8": "int",
    "uint16": "int",
    "int16": "int",
    "uint32": "int",
    "int32": "int",
    "uint64": "int",
    "int64": "int",
    "float32": "float",
    "float64": "float",
}


def write(folder, packages=()):
    """Writes the stubs of all types that are known, or of those of these packages; returns how many types there are."""
    folder, files = pathlib.Path(folder), {}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.pyi").write_text("")
    for full in _tsuji.interface_names():
        package, kind, name = full.split("/")
        if not packages or package in packages:
            files.setdefault((package, kind), []).append(name)
    missing = set(packages) - {package for package, _ in files}
    if missing:
        raise LookupError(f"no package {', '.join(sorted(missing))}; allowed: those of AMENT_PREFIX_PATH, of added folders, and what ships")
    for (package, kind), names in files.items():
        path = folder / package / f"{kind}.pyi"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.pyi").write_text("")
        path.write_text(_module(package, kind, names))
    return sum(map(len, files.values()))


def _module(package, kind, names):
    imports, classes = set(), []
    for name in names:
        full = f"{package}/{kind}/{name}"
        if kind == "msg":
            classes.append(_message(name, _tsuji.load(full), imports, ""))
        elif kind == "srv":
            classes.append(_parts(name, "Service", zip(("Request", "Response"), _tsuji.load_service(full)), imports))
        else:
            classes.append(_parts(name, "Action", zip(("Goal", "Result", "Feedback"), _tsuji.load_action(full)), imports))
    imports.discard(f"tsuji.interfaces.{package}.{kind}")
    lines = "".join(f"import {it}\n" for it in sorted(imports))
    return _HEAD.format(kind=kind, package=package) + lines + "".join(classes)


def _parts(name, base, parts, imports):
    parts = list(parts)
    of = ", ".join(f'"{name}.{part}"' for part, _ in parts)
    return f"\nclass {name}(_tsuji.{base}[{of}]):\n" + "".join(_message(part, made, imports, "    ") for part, made in parts)


def _message(name, made, imports, indent):
    lines = [f"\n{indent}class {name}(_tsuji.Message):"]
    for constant, value in vars(made).items():
        if constant.isupper() and not constant.startswith("_"):
            lines.append(f"{indent}    {constant}: _ClassVar[{type(value).__name__}]")
    arguments = []
    for field, of in made._plan.fields:
        shown, taken = _types(of, imports)
        if keyword.iskeyword(field):
            continue
        lines.append(f"{indent}    {field}: {shown}")
        arguments.append(f"{field}: {taken} = ...")
    stars = "*, " if arguments else ""
    lines.append(f"{indent}    def __init__(self, {stars}{', '.join(arguments)}) -> None: ...".replace("self, )", "self)"))
    return "\n".join(lines) + "\n"


def _types(of, imports):
    """The type of a field when it is read, and when the message is made."""
    base, _, more = of.partition("[")
    if base in _NUMBERS:
        if not more:
            return _NUMBERS[base], _NUMBERS[base]
        dtype = "bool_" if base == "bool" else base
        return f"_Numbers[_numpy.{dtype}, {_NUMBERS[base]}]", f"_NumbersIn[_numpy.{dtype}, {_NUMBERS[base]}]"
    if base in ("string", "wstring"):
        one = "str"
    else:
        package, kind, name = base.split("/")
        imports.add(f"tsuji.interfaces.{package}.{kind}")
        one = f"tsuji.interfaces.{package}.{kind}.{name}"
    return (f"list[{one}]", f"_Sequence[{one}]") if more else (one, one)
