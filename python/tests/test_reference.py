"""docs/reference/python.md says of each public name what the stubs and the package itself say.

`TSUJI_WRITE_REFERENCE=1 scripts/python` writes it.
"""

import ast
import inspect
import os
import pathlib

import tsuji
import tsuji._tsuji

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/python.md"
STUBS = ROOT / "python/package/tsuji/__init__.pyi"

HEAD = """# Python, name by name

This page is made of the stubs and the docstrings of the package, and a test compares it with them. [The Python package](../../python/README.md)
says how it is used, with the errors that are raised. Times are in seconds; a timeout of `None` is none.

`M` stands for a class of messages. `Q`, `R` and `F` are those of requests or goals, of responses or results, and of feedback.
A `type` is a class or a name such as `std_msgs/msg/String`.
"""

# What the language asks for and everybody knows.
UNTOLD = {"__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__next__", "__aiter__", "__anext__", "__getattr__", "__setattr__"}
UNTOLD |= {"__copy__", "__deepcopy__", "__len__", "__init__"}


def documentation(owner, name):
    """What the package says of a member, or of the class itself; the extension where the Python part leaves it to that."""
    for module in (tsuji, tsuji._tsuji):
        value = getattr(module, owner, None)
        if value is not None and name:
            value = inspect.getattr_static(value, name, None)
        if value is not None:
            break
    value = getattr(value, "__func__", value)
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    assert text, f"{owner}.{name} has no docstring"
    return " ".join(text.split())


def argument(argument, default):
    annotated = f"{argument.arg}: {ast.unparse(argument.annotation)}" if argument.annotation else argument.arg
    return f"{annotated} = {ast.unparse(default)}" if default else annotated


def signature(function, name):
    """How a function is called, without `self`."""
    arguments = function.args
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    words = [argument(*it) for it in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        words.insert(len(arguments.posonlyargs), "/")
    if positional and positional[0].arg in ("self", "cls"):
        del words[0]
    if arguments.kwonlyargs:
        words += ["*", *(argument(*it) for it in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))]
    if arguments.kwarg:
        words.append(f"**{argument(arguments.kwarg, None)}")
    wait = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    returned = returns(function)
    return f"{wait}{name}({', '.join(words)})" + (f" → {returned}" if returned != "None" else "")


def returns(function):
    return ast.unparse(function.returns)


def decorators(function):
    return {ast.unparse(it) for it in function.decorator_list}


def class_lines(node):
    lines = [f"## {node.name}\n", documentation(node.name, None), ""]
    members = [it for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
    for member in members:
        if member.name == "__init__":
            lines.append(f"- `{signature(member, f'tsuji.{node.name}')}`")
    # Of what is written several times for checkers of types, one form of each class that it returns.
    told = {}
    for member in members:
        if member.name in UNTOLD:
            continue
        if "property" in decorators(member):
            form = f"`{member.name}`: `{returns(member)}`"
        else:
            form = f"`{signature(member, member.name)}`"
        kind = returns(member).split("[")[0]
        forms = told.setdefault(member.name, {})
        if "overload" not in decorators(member):
            forms[kind] = form
        elif kind == "None":
            forms[form] = form
        elif kind != "Any":
            forms.setdefault(kind, form)
    for name, forms in told.items():
        lines.append(f"- {' or '.join(forms.values())}. {documentation(node.name, name)}")
    constants = [it.target.id for it in node.body if isinstance(it, ast.AnnAssign) and it.target.id.isupper()]
    for constant in constants:
        lines.append(f"- `{constant}`: `{getattr(tsuji, node.name).__dict__[constant]!r}`")
    return [*lines, ""] if lines[-1] else lines


def page():
    body = ast.parse(STUBS.read_text()).body
    lines = [HEAD]
    functions = [it for it in body if isinstance(it, ast.FunctionDef)]
    classes = [it for it in body if isinstance(it, ast.ClassDef) and not it.name.endswith("Error") and it.name != "Info"]
    # What a program begins with.
    classes.sort(key=lambda it: it.name != "Node")
    lines.append("## Functions\n")
    for function in functions:
        lines.append(f"- `{signature(function, f'tsuji.{function.name}')}`. {documentation(function.name, None)}")
    lines.append("")
    for node in classes:
        lines += class_lines(node)
    return "\n".join(lines).rstrip() + "\n"


def test_the_page_says_what_the_package_says():
    made = page()
    if os.environ.get("TSUJI_WRITE_REFERENCE"):
        PAGE.write_text(made)
    stale = f"{PAGE.relative_to(ROOT)} is stale; TSUJI_WRITE_REFERENCE=1 scripts/python writes it"
    assert PAGE.read_text() == made, stale
