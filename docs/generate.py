"""Writes docs/reference as the code declares it; tests/docs/test_reference.py holds the committed pages equal to it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings
from typer.core import TyperGroup

ROOT = Path(__file__).parent.parent
NOTE = "<!-- written by docs/generate.py: change the code, then run it -->\n"
# What people call by hand or from another language; every other function is internal.
FUNCTIONS = (
    "pipeline.submit",
    "pipeline.submit_many",
    "pipeline.cancel",
    "pipeline.replay",
    "pipeline.signal",
    "pipeline.signal_by_link",
    "pipeline.link_state",
    "pipeline.replay_many",
    "pipeline.discard",
    "pipeline.reset",
    "pipeline.open_batch",
    "pipeline.seal_batch",
    "pipeline.set_rate_limit",
    "pipeline.pause_rate_limit",
    "pipeline.resume_rate_limit",
    "pipeline.pause",
    "pipeline.pause_phases",
    "pipeline.resume_phases",
    "pipeline.set_pool",
    "pipeline.set_rate",
    "pipeline.drain",
    "pipeline.job_status",
    "pipeline.await_ends",
    "pipeline.schedule",
    "pipeline.unschedule",
    "pipeline.pause_schedule",
    "pipeline.resume_schedule",
    "pipeline.run_schedule",
    "pipeline.backfill",
    "pipeline.list_schedules",
    "pipeline.moment",
    "pipeline.timeline",
    "pipeline.stats",
    "pipeline.relay_lag",
    "pipeline.alive",
    "pipeline.verify",
    "pipeline.move",
    "scrape_collect",
)
FUNCTION = re.compile(
    r"((?:^--[^\n]*\n)*)^CREATE OR REPLACE FUNCTION ([\w.]+)\s*\((.*?)\)\s*(?:RETURNS (.*?)\s+)?LANGUAGE (\w+)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)


def pages() -> dict[str, str]:
    """The text of each page, by its name in docs/reference."""
    return {
        "settings.md": settings(),
        "cli.md": commands(),
        "http.md": routes(),
        "sql.md": functions(),
        "failpoints.md": failpoints(),
        "python.md": python(),
    }


def settings() -> str:
    from actors.document.config import DocumentSettings
    from actors.match.config import MatchSettings
    from actors.scrape.config import ScrapeSettings
    from actors.website.config import WebsiteSettings
    from pipeline.settings import Settings
    from pipeline.webhooks.config import WebhookSettings

    kinds = (Settings, WebhookSettings, WebsiteSettings, DocumentSettings, MatchSettings, ScrapeSettings)
    parts = [f"## {kind.__name__}\n\n{kind.__doc__}\n\n{_table(kind)}" for kind in kinds]
    intro = (
        "A process reads its settings from the environment when it starts and reports all invalid ones of a section "
        "at once. Times are in seconds, sizes in bytes. Only the `pipeline` command looks for private servers "
        "(`pipeline services start`) in the current folder when the addresses are not set; for every other process, "
        'run `eval "$(pipeline services env)"` first. Tracing is configured with `OTEL_EXPORTER_OTLP_ENDPOINT` and '
        "the other variables of the OpenTelemetry SDK."
    )
    return "\n".join([NOTE, "# Settings\n", intro, "", *parts])


def _table(kind: type[BaseSettings]) -> str:
    rows = [_setting(kind.model_config.get("env_prefix", ""), *item) for item in kind.model_fields.items()]
    return "\n".join(["| name | default | kind | |", "|---|---|---|---|", *rows, ""])


def _setting(prefix: str, name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    known = str(getattr(alias, "choices", [alias])[0]) if alias else f"{prefix}{name.upper()}"
    kind = re.sub(r"\w+\.(?=\w)|typing\.|<class '|'>", "", str(field.annotation))
    limits = " ".join(_limit(item) for item in field.metadata if _limit(item))
    about = " · ".join(part for part in (field.description or "", limits) if part)
    return f"| `{known}` | {_default(field)} | {kind.replace('|', 'or')} | {about} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr | dict) or value in (None, "", (), frozenset()):
        return ""
    if isinstance(value, Path) and value.is_absolute():
        return f"`{value.name}` in the temporary folder"
    return f"`{','.join(map(str, sorted(value))) if isinstance(value, frozenset) else value}`"


def _limit(item: Any) -> str:
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤", "max_length": "length ≤"}
    return " ".join(f"{sign} {getattr(item, name)}" for name, sign in signs.items() if hasattr(item, name))


def commands() -> str:
    import pipeline.actors  # noqa: F401  declares the workflows, which bring commands of their own
    from pipeline.declare.extension import extensions, load
    from pipeline.front.cli.main import app

    for extension in extensions():
        for add_to in extension.commands:
            load(add_to)(app)
    intro = (
        "Exit codes: 0 success; 1 the request cannot be met (`verify`, `doctor`: something is left to repair); "
        "2 the command line is invalid; 3 a server does not answer. `pipeline sources` and `pipeline sandbox` come "
        "from the workflows of this repository; the rest is the engine's."
    )
    return "\n".join([NOTE, "# Commands\n", intro, "", *_command(typer.main.get_command(app), "pipeline")])


def _command(command: Any, path: str) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        if command.invoke_without_command:
            yield from _section(command, path)
        for name, child in sorted(command.commands.items()):
            yield from _command(child, f"{path} {name}")
        return
    yield from _section(command, path)


def _section(command: Any, path: str) -> Iterator[str]:
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    named = {item: item.metavar or item.name.upper() for item in arguments}
    shown = "".join(f" {named[item]}" if item.required else f" [{named[item]}]" for item in arguments)
    yield f"## `{path}{shown}`\n"
    yield " ".join((command.help or "").split()) + "\n"
    for item in command.params:
        about = getattr(item, "help", None) or ""
        name = named[item] if item in named else ", ".join(item.opts)
        default = "" if item.default in (None, False, ...) or item.required else f" (default `{item.default}`)"
        if about or default or item not in arguments:
            yield f"- `{name}`{': ' if about else ''}{about}{default}"
    yield ""


def routes() -> str:
    import pipeline.actors  # noqa: F401  declares the workflows, which bring routes of their own
    from pipeline.declare.extension import extensions, load
    from pipeline.front.api.app import PARTS

    routers = [part.router for part in PARTS]
    routers += [load(router) for extension in extensions() for router in extension.routes]
    rows = [row for router in routers for row in _routes(router.routes)]
    intro = (
        "Authentication, errors, pagination and idempotency keys: [the HTTP API](../api.md). Every field: "
        "`GET /v1/openapi.json`. The routes under `/v1/projects` and `/v1/sources` come from the workflows of this "
        "repository."
    )
    head = ["| route | role | |", "|---|---|---|"]
    return "\n".join([NOTE, "# HTTP routes\n", intro, "", *head, *rows, ""])


def _routes(found: Any) -> Iterator[str]:
    for route in found:
        # Endpoints ask for a role by their signature.
        asked = {str(kind).lower() for kind in route.endpoint.__annotations__.values()}
        role = next((role for role in ("viewer", "operator") if role in asked), "–")
        for method in sorted(route.methods - {"HEAD"}):
            yield f"| `{method} {route.path}` | {role} | {route.description.strip().split(chr(10))[0]} |"


def functions() -> str:
    from pipeline.store.migrate import sql_files

    found = {
        name: (about, given, back, path)
        for path in [*sql_files(), *sorted(ROOT.glob("actors/*/views.sql"))]
        for about, name, given, back, _ in FUNCTION.findall(path.read_text(encoding="utf-8"))
    }
    intro = (
        "Functions to call from any language, inside your own transaction. A refusal is an SQL error with a code "
        "`PL…` and a hint. States: [the life of a job](../state-machine.md). `scrape_collect` belongs to the scrape "
        "workflow; the rest is the engine's."
    )
    return "\n".join([NOTE, "# SQL functions\n", intro, "", *(_function(name, *found[name]) for name in FUNCTIONS)])


def _function(name: str, about: str, given: str, back: str, path: Path) -> str:
    said = about or re.match(r"(?:--[^\n]*\n)*", path.read_text(encoding="utf-8"))[0]  # type: ignore[index]
    words = " ".join(re.sub(r"^-- ?", "", said, flags=re.MULTILINE).split())
    call = " ".join(f"{name}({given}){f' → {back}' if back else ''}".split())
    return f"## {name}\n\n```sql\n{call}\n```\n\n{words}\n\n[{path.name}](../../{path.relative_to(ROOT)})\n"


def python() -> str:
    from docs import public_names

    return "\n".join([NOTE, public_names.page(), ""])


def failpoints() -> str:
    from pipeline.observe.failpoints import POINTS

    intro = (
        "The engine's protocol is a series of I/O calls, and a process can die between any two of them. Each such "
        "place has a name. A test kills a worker exactly there, also after an answer was lost, and another worker ends "
        "the jobs: each phase succeeds once, and each row is written once "
        "([`test_failpoints.py`](../../tests/crash/test_failpoints.py))."
    )
    head = ["| point | done | not done | who finds the job |", "|---|---|---|---|"]
    rows = [f"| `{name}` | {point.done} | {point.not_done} | {point.found_by} |" for name, point in POINTS.items()]
    return "\n".join([NOTE, "# Who finds the job if the process dies here\n", intro, "", *head, *rows, ""])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page, content in pages().items():
        (ROOT / "docs" / "reference" / page).write_text(content, encoding="utf-8")
