"""Prints the public names of rclpy, one a line: modules, functions, classes and what the classes have.

`api.py compare NAMES DOCUMENT` compares such a list of the real one with tsuji's rclpy and with what a document says."""

import importlib
import inspect
import pkgutil
import sys
import warnings

# Of the inside of rclpy, which programs have no use for.
INSIDE = ("rclpy.impl", "rclpy.destroyable")


def names():
    warnings.simplefilter("ignore")
    import rclpy

    modules = ["rclpy", *(it.name for it in pkgutil.walk_packages(rclpy.__path__, "rclpy."))]
    for name in modules:
        if name.startswith(INSIDE) or any(part.startswith("_") for part in name.split(".")):
            continue
        module = importlib.import_module(name)
        yield name
        for of, thing in vars(module).items():
            # A package's own, and what it has of its modules; not what a module happens to import.
            at = getattr(thing, "__module__", "") or ""
            if of.startswith("_") or not (
                at == name or of in getattr(module, "__all__", ()) or (hasattr(module, "__path__") and at.startswith("rclpy."))
            ):
                continue
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{name}.{of}"
            if inspect.isclass(thing) and at == name:
                for member in dir(thing):
                    if not member.startswith("_") and not hasattr(Exception, member) and not hasattr(int, member):
                        yield f"{name}.{of}.{member}"


def compare(real, document):
    """Whether a document names, in its section of what is not there, all of the real rclpy that tsuji's has not, and nothing else."""
    import re

    import tsuji.rclpy

    tsuji.rclpy.install()
    missing = set(open(real).read().split()) - set(names())
    section = open(document).read().split("## What is not there")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}

    def covers(entry, name):
        return f".{entry}." in f".{name}."

    untold = sorted(name for name in missing if not any(covers(entry, name) for entry in told))
    stale = sorted(entry for entry in told if not any(covers(entry, name) for name in missing))
    for name in untold:
        print(f"{name}: rclpy has it, and {document} does not say that tsuji has it not")
    for entry in stale:
        print(f"{entry}: {document} says that it is not there, and it is")
    print(f"rclpy: {len(missing)} of the real one's names are not there, as {document} says")
    return not untold and not stale


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        sys.exit(0 if compare(*sys.argv[2:]) else 1)
    print("\n".join(sorted(set(names()))))
