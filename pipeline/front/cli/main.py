"""The ``pipeline`` command."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Annotated, NoReturn

import typer
from sqlalchemy.exc import DBAPIError, OperationalError

from pipeline import __version__
from pipeline.declare.errors import BadInput, what_was_said
from pipeline.declare.extension import extensions, load
from pipeline.dev.services import ServiceError, use_private_servers
from pipeline.front.cli import api, audit, keys, phases, run, schedules, verify, watch, workers, workflows
from pipeline.front.cli.jobs import bulk, dead, show
from pipeline.front.cli.jobs import commands as jobs
from pipeline.front.cli.waits import commands as waits
from pipeline.front.cli.waits import limits
from pipeline.front.cli.workflows import load_workflows
from pipeline.front.database import LOCKED, is_locked
from pipeline.observe import logs

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Durable jobs in phases, on Dramatiq, RabbitMQ and PostgreSQL.",
)
for part in (
    run,
    jobs,
    show,
    waits,
    workers,
    phases,
    keys,
    limits,
    workflows,
    schedules,
    dead,
    bulk,
    verify,
    audit,
    watch,
    api,
):
    part.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"pipeline {__version__}")
        raise typer.Exit


# Eager: without it, the missing command is complained about first.
Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
]


@app.callback()
def _options(version: Version = False) -> None:
    """What can be asked without a command."""


def main() -> None:
    """Errors on purpose are one message and exit code 1 (what was asked for) or 3 (servers)."""
    # To standard error: what a command prints is for people and scripts. Servers choose their own form.
    logs.configure("console", "WARNING")
    try:
        use_private_servers()
        (app if _is_ours(sys.argv[1:2]) else whole())()
    except (BadInput, ServiceError) as error:
        _say(str(error), 1)
    except DBAPIError as error:
        _refused(error)


def _refused(error: DBAPIError) -> NoReturn:
    if is_locked(error):
        _say(LOCKED, 1)
    if isinstance(error, OperationalError):
        said = what_was_said(error.orig)
        _say(f'PostgreSQL does not answer: {said}\n  check DATABASE_URL, or run "pipeline services start"', 3)
    hint = ' (run "pipeline migrate"?)' if "does not exist" in str(error.orig) else ""
    _say(f"PostgreSQL refused: {str(error.orig).strip().splitlines()[0]}{hint}", 3)


def _is_ours(first: list[str]) -> bool:
    """Whether a command of the engine is called: then the application's own need not be loaded for it."""
    return bool(first) and first[0] in typer.main.get_command(app).commands  # type: ignore[attr-defined]


@lru_cache(maxsize=1)
def whole() -> typer.Typer:
    """The command with all that the application has added to it."""
    _add_commands()
    return app


def _add_commands() -> None:
    """Those of the application. One that cannot be loaded must not keep anybody from stopping the servers."""
    if not load_workflows():
        return
    for extension in extensions():
        for command in extension.commands:
            try:
                load(command)(app)
            except Exception as error:
                sys.stderr.write(f"pipeline: the command {command} could not be loaded: {error}\n")


def _say(text: str, code: int) -> NoReturn:
    sys.stderr.write(f"pipeline: {text}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
