"""Which jobs: the filters of ``pipeline jobs``, and what cancel and replay do with all that match."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast, get_args

import typer

from pipeline.declare.errors import BadInput
from pipeline.declare.states import Status
from pipeline.front import many
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.workflows import check_phase
from pipeline.front.database import transaction
from pipeline.store.gateway.client import Unfinished, Where

PREFIX = re.compile(r"[0-9a-f]{4,32}")
NAMES = ("workflow", "phase", "status", "tag", "since", "until", "id", "error")
EXAMPLE = """--where "workflow=orders status=pending since=2h error='no price'\""""


def where_of(
    *,
    workflow: str | None = None,
    phase: str | None = None,
    status: str | None = None,
    tag: str | None = None,
    since: str | None = None,
    until: str | None = None,
    id: str | None = None,  # noqa: A002  what people call it
    error: str | None = None,
) -> Where:
    """As people type it: times as 2h or 2030-01-31T12:00:00Z, an id as its beginning."""
    with transaction() as connection:
        check_phase(connection, workflow, phase)
    return Where(
        workflow, phase, _status(status), tag, _moment("since", since), _moment("until", until), _hex(id), error
    )


def read(words: str) -> Where:
    """A filter on one line: ``workflow=orders status=failed error='no price'``."""
    try:
        pairs = [word.partition("=") for word in shlex.split(words)]
    except ValueError as error:
        raise BadInput(f"--where cannot be read ({error}); write for example {EXAMPLE}") from None
    wrong = [name for name, equals, value in pairs if name not in NAMES or not equals or not value]
    if wrong or not pairs:
        raise BadInput(f"--where takes {', '.join(NAMES)}, each with a value; write for example {EXAMPLE}")
    return where_of(**{name: value for name, _, value in pairs})


def do(what: str, where: Where, act: many.Act, *, yes: bool) -> int:
    """Say how many match, ask, and do it, a thousand a transaction. Returns with how many it was done."""
    total = _count(where)
    print(f"{total} jobs match: {_words(where)}")
    if not total:
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("nobody is there to be asked: add --yes to do it")
        typer.confirm(f"{what} {total} jobs?", abort=True)
    return _all(where, act, lambda done: print(f"  {done} of {total}", file=sys.stderr))


def _count(where: Where) -> int:
    total, before = 0, None
    while True:
        with transaction() as connection:
            found = many.count(connection, where, before)
        total, before = total + found.jobs, found.next
        if before is None:
            return total


def _all(where: Where, act: many.Act, say: Callable[[int], None]) -> int:
    done, before = 0, None
    while True:
        with transaction() as connection:
            part = many.part(connection, where, before, act)
        done, before = done + part.jobs, part.next
        if before is None:
            return done
        say(done)


def _words(where: Where) -> str:
    return ", ".join(f"{name} {value}" for name, value in many.described(where).items()) or "all jobs"


def _status(given: str | None) -> Status | Unfinished | None:
    known = [*Status, *get_args(Unfinished)]
    if given is not None and given not in known:
        raise BadInput(f"{given!r} is not a state; those are {', '.join(known)}")
    return cast("Status | Unfinished | None", given)


def _moment(name: str, given: str | None) -> datetime | None:
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        return datetime.now(UTC) - timedelta(seconds=seconds_of(f"--{name}", given))
    return moment if moment.tzinfo else moment.astimezone()


def _hex(given: str | None) -> str | None:
    if given is None:
        return None
    prefix = given.lower().replace("-", "")
    if not PREFIX.fullmatch(prefix):
        raise BadInput(f"{given!r} is not the beginning of a job id: give at least four of its digits")
    return prefix
