"""Writes type stubs of your own messages, for editors and mypy.

    python -m tsuji.stubs [--interfaces FOLDER]… [--out FOLDER] [PACKAGE…]

They go beside those of the messages that ship, into the installed package, where editors look.
"""

import argparse
import sys

import tsuji

from . import _stubs


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tsuji.stubs", description="Writes type stubs of messages, for editors and mypy.")
    parser.add_argument("--out", metavar="FOLDER", default=_stubs.HOME, help="where the stubs go; the installed package by default")
    parser.add_argument("--interfaces", metavar="FOLDER", action="append", default=[], help="a folder with packages of definitions")
    parser.add_argument("packages", nargs="*", help="packages; all that are known if none is named")
    asked = parser.parse_args(arguments)
    try:
        for folder in asked.interfaces:
            tsuji.add_interface_folder(folder)
        count = _stubs.write(asked.out, asked.packages)
    except (LookupError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Wrote the stubs of {count} types to {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
