"""The ``pipeline`` command."""

from __future__ import annotations

import sys

import typer
from sqlalchemy.exc import DBAPIError, OperationalError

from pipeline.front import cli_api, cli_dead, cli_jobs, cli_run, cli_sources, cli_verify, cli_watch
from pipeline.rules.errors import BadInput
from pipeline.services import ServiceError

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False,
    help="Durable jobs in phases, on Dramatiq, RabbitMQ and PostgreSQL.",
)  # fmt: skip
cli_run.add_to(app)
cli_jobs.add_to(app)
cli_dead.add_to(app)
cli_verify.add_to(app)
cli_watch.add_to(app)
cli_sources.add_to(app)
cli_api.add_to(app)


def main() -> None:
    """Errors on purpose are one message and exit code 1 (what was asked for) or 3 (servers)."""
    try:
        app()
    except (BadInput, ServiceError) as error:
        _say(str(error), 1)
    except OperationalError as error:
        said = str(error.orig).strip().splitlines()[-1]
        _say(f'PostgreSQL does not answer: {said}\n  check DATABASE_URL, or run "pipeline services start"', 3)
    except DBAPIError as error:
        hint = ' (run "pipeline migrate"?)' if "does not exist" in str(error.orig) else ""
        _say(f"PostgreSQL refused: {str(error.orig).strip().splitlines()[0]}{hint}", 3)


def _say(text: str, code: int) -> None:
    sys.stderr.write(f"pipeline: {text}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
