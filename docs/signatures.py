"""Signatures as they stand in the code, one line or one parameter a line; and what a class has to be called."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

WIDTH = 90


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties as they stand in the code, those of our base classes too."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("pipeline")]
    for name in dict.fromkeys(name for base in ours for name in vars(base)):
        value = inspect.getattr_static(kind, name)
        if not name.startswith("_") and inspect.isfunction(_function(value)):
            yield name, getattr(kind, name) if isinstance(value, classmethod) else value


def _function(value: Any) -> Any:
    return value.fget if isinstance(value, property) else getattr(value, "func", value)


def signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        return _class(name, thing)
    if inspect.isfunction(thing):
        return call(name, thing)
    return f"{name} = {type(thing).__name__}(…)" if name == "webhook" else name


def _class(name: str, kind: type) -> str:
    bases = [base.__name__ for base in kind.__bases__ if base.__name__ not in ("object", "Generic")]
    if is_dataclass(kind):
        return f"class {name}{_arguments([_field(field) for field in _fields(kind)])}"
    written = next((base for base in kind.__mro__ if "__init__" in vars(base)), object)
    if issubclass(kind, BaseException) and written.__module__ == "builtins":
        return f"class {name}({', '.join(bases)})"
    if written.__module__.startswith("pipeline"):
        return f"class {name}{_arguments(_parameters(_tree(vars(written)['__init__'])))}"
    return f"class {name}" + (f"({', '.join(bases)})" if bases else "")


def _fields(kind: type) -> Iterator[ast.AnnAssign]:
    """What a dataclass is made with; its own fields are not shown where their repr is not."""
    hidden = {one.name for one in fields(kind) if not (one.init and one.repr)}
    for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) not in hidden:
            yield node


def _field(node: ast.AnnAssign) -> str:
    said = f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}"
    if node.value is None:
        return said
    made = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "field"
    return f"{said} = {'…' if made else ast.unparse(node.value)}"


def call(name: str, value: Any) -> str:
    tree = _tree(_function(value))
    given = "" if isinstance(value, property) else _arguments(_parameters(tree))
    later = "async " if isinstance(tree, ast.AsyncFunctionDef) else ""
    return f"{later}{name}{given}" + (f" -> {ast.unparse(tree.returns)}" if tree.returns else "")


def _tree(function: Any) -> Any:
    """Where a decorator made the function, it is the one that was decorated."""
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]


def _parameters(tree: Any) -> list[str]:
    """Without self; as they stand in the code."""
    given = tree.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    said = [_parameter(one, default) for one, default in zip(plain, defaults, strict=True)]
    if given.posonlyargs:
        said.insert(len(given.posonlyargs), "/")
    said += [f"*{_parameter(given.vararg, None)}"] if given.vararg else ["*"] if given.kwonlyargs else []
    said += [_parameter(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    said += [f"**{_parameter(given.kwarg, None)}"] if given.kwarg else []
    return said[1:] if said and said[0] in ("self", "cls") else said


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    said = f"{one.arg}: {ast.unparse(one.annotation)}" if one.annotation else one.arg
    return said if default is None else f"{said} = {ast.unparse(default)}"


def _arguments(said: list[str]) -> str:
    line = f"({', '.join(said)})"
    return line if len(line) <= WIDTH else "(\n" + "".join(f"    {one},\n" for one in said) + ")"
