"""A job's body on the command line: as words or JSON, and what the help says of a typed one."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import typer.core
from rich.markup import escape
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.declare.registry import body_codec, read_body, workflows
from pipeline.front.cli.console import console
from pipeline.front.cli.workflows import load_workflows

WORD = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
EXAMPLE = '\'{"url": "https://example.org"}\' or url=https://example.org'


def read(workflow: str, words: list[str]) -> Any:
    """The body, as its workflow's type if the workflow is known here. BadInput names each wrong field."""
    return read_body(workflow, _parse(workflow, words))


def read_any(words: list[str]) -> Any:
    """Any JSON, or an object of words; None for nothing. BadInput if it is neither."""
    named = [WORD.fullmatch(word) for word in words]
    if words and all(named):
        return {found[1]: _json_or_text(found[2]) for found in named if found}
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    try:
        return json.loads(text, parse_constant=_refuse) if text.strip() else None
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"the body is not JSON ({error}); write for example "
            '\'{"by": "Ada"}\' or by=Ada, and text in double quotes'
        ) from None


def _parse(workflow: str, words: list[str]) -> dict[str, Any]:
    named = [WORD.fullmatch(word) for word in words]
    if words and all(named):
        return {found[1]: _value(workflow, found[1], found[2]) for found in named if found}
    if len(words) > 1:
        raise BadInput(f"the body is one JSON object, or words such as order=17 note=quick, not {' '.join(words)!r}")
    text = "".join(words) or "{}"
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except json.JSONDecodeError as error:
        raise BadInput(f"the body is not JSON ({error}); write for example {EXAMPLE}") from None
    if not isinstance(value, dict):
        raise BadInput(f"the body must be a JSON object; write for example {EXAMPLE}")
    return value


def _value(workflow: str, field: str, text: str) -> Any:
    """JSON where it is JSON, else text; always text where the workflow's type takes one, as it does for an amount."""
    schema = body_codec(workflow).schema() or {}
    if _takes_text(_resolved(schema, schema).get("properties", {}).get(field, {}), schema):
        return text
    return _json_or_text(text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text


def _takes_text(field: dict[str, Any], schema: dict[str, Any]) -> bool:
    field = _resolved(field, schema)
    return field.get("type") == "string" or any(_takes_text(one, schema) for one in _alternatives(field))


def _refuse(constant: str) -> None:
    """NaN and Infinity are not JSON, whatever Python's reader thinks of them."""
    raise ValueError(constant)


class WithBody(typer.core.TyperCommand):
    """A command about a workflow. If that is named as well, ``--help`` shows the fields of its body.

    Contexts and formatters are Click's, which Typer brings as a private part of its own.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["words"] = list(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        words = [word for word in ctx.meta.get("words", ()) if not word.startswith("-")]
        if words and load_workflows() and (named := [word for word in words if word in workflows()]):
            _describe(named[0])


def _describe(workflow: str) -> None:
    out = console()
    schema = body_codec(workflow).schema() or {}
    whole = _resolved(schema, schema)
    if "properties" not in whole:
        out.print(f"The body of {workflow} is a JSON object; its fields are not declared.", highlight=False)
        return
    table = Table("field", "type", "required", "default", "", title=f"The body of {workflow}", title_justify="left")
    for name, field in whole.get("properties", {}).items():
        default = json.dumps(field["default"]) if "default" in field else ""
        about = _resolved(field, schema).get("description", "") if "description" not in field else field["description"]
        required = "yes" if name in whole.get("required", ()) else ""
        table.add_row(*map(escape, (name, _type(field, schema), required, default, about)))
    out.print(table)


def _resolved(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What a reference leads to."""
    name = field.get("$ref", "").removeprefix("#/$defs/")
    found: dict[str, Any] = schema.get("$defs", {}).get(name, field)
    return found


def _alternatives(field: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = field.get("anyOf") or field.get("oneOf") or []
    return found


def _type(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """In a word or two: what a person writes there."""
    field = _resolved(field, schema)
    if alternatives := _alternatives(field):
        return " or ".join(dict.fromkeys(_type(one, schema) for one in alternatives))
    if "enum" in field or "const" in field:
        return " | ".join(json.dumps(one) for one in field.get("enum", [field.get("const")]))
    if field.get("type") == "array" and "items" in field:
        return f"list of {_type(field['items'], schema)}"
    return str(field.get("format") or field.get("type") or "anything")
