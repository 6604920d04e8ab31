"""Commands about dead letters: one by one, or all that failed for the same cause."""

from __future__ import annotations

import json
from hashlib import blake2s
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.jobs import commands as cli_jobs
from pipeline.front.cli.jobs import show as cli_show
from pipeline.front.cli.jobs.commands import job_column, read_id
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.store import inspect
from pipeline.store.control import actions as control
from pipeline.store.gateway import client

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from pipeline.front import dead_jobs
    from pipeline.front.dead_jobs import Group

out = console()
dead = typer.Typer(no_args_is_help=True, help="Jobs that failed: list, look, run again, discard; also by their cause.")
Jobs = Annotated[list[str] | None, typer.Argument(help="Ids of failed jobs.")]
OfGroup = Annotated[str | None, typer.Option("--group", help="All of a group, by its id in: pipeline dead groups.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(dead, name="dead")


@dead.command("list")
def list_failed(workflow: str | None = None, limit: int = 50, as_json: Json = False) -> None:
    """Failed jobs, newest first."""
    rows = inspect.failed(workflow, limit)
    if as_json:
        print(json.dumps(rows, default=str))
        return
    table = Table(job_column(), "phase", "failed", "error", title=f"{len(rows)} failed jobs")
    for row in rows:
        table.add_row(
            str(row["id"]),
            f"{row['workflow']}.{row['phase']}",
            f"{row['completed_at']:%F %T}",
            escape((row["error_message"] or "")[:120]),
        )
    out.print(table)


@dead.command("groups")
def groups(
    workflow: str | None = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    newest: Annotated[bool, typer.Option("--newest", help="The newest failures first, not the most jobs.")] = False,
    as_json: Json = False,
) -> None:
    """Failed jobs by their cause, each with a sample; those with the most jobs first."""
    rows = _groups(workflow, limit, "newest" if newest else "jobs")
    if as_json:
        print(json.dumps(rows, default=str))
        return
    for row in rows:
        # Lines, not a table: causes are long, and a cut id is of no use in the next command.
        phase, first, last = f"{row['workflow']}.{row['phase']}", f"{row['first_at']:%F %R}", f"{row['last_at']:%F %R}"
        print(f"{row['id']}  {phase}: {row['cause']}")
        print(f"          {row['jobs']} jobs, first {first}, last {last}; sample {row['samples'][0]['id']}")


@dead.command("show")
def show(job: str, as_json: Json = False) -> None:
    """A failed job with its history."""
    cli_show.status(job, as_json)


@dead.command("replay")
def replay(
    jobs: Jobs = None,
    *,
    group: OfGroup = None,
    canary: Annotated[bool, typer.Option("--canary", help="Only the group's oldest job.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.01, max=10_000, help="So many a second, not all at once.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; see: pipeline audit.")] = None,
    as_json: Json = False,
) -> None:
    """Run failed jobs again: those named, or a group's, one as a canary and then the rest at a rate."""
    from pipeline.front import dead_jobs

    _one_way(jobs, group)
    if group is not None:
        most = 1 if canary else dead_jobs.MOST
        found = _of_group(
            group,
            _noted("replay", group, reason, lambda connection, ids: client.replay_many(connection, ids, rate), rate),
            most,
            again=not canary and rate is None,
        )
        _say("sent again", found, as_json)
        return
    if canary or rate is not None:
        raise BadInput("--canary and --rate are for a group: add --group ID (see: pipeline dead groups)")
    for job in jobs or ():
        cli_jobs.send_again(job, None, reason)
        _say_one("sent again", job, as_json)


@dead.command("discard")
def discard(
    reason: Annotated[str, typer.Option(prompt=True, help="Why; it stays with the jobs.")],
    jobs: Jobs = None,
    group: OfGroup = None,
    as_json: Json = False,
) -> None:
    """Take failed jobs off the list: they become cancelled, with the reason."""
    from pipeline.front import dead_jobs

    _one_way(jobs, group)
    if group is not None:
        act = _noted("discard", group, reason, lambda connection, ids: client.discard_many(connection, ids, reason))
        found = _of_group(group, act, dead_jobs.MOST)
        _say("discarded", found, as_json)
        return
    for job in jobs or ():
        with transaction() as connection:
            done = client.discard_many(connection, [read_id(job)], reason)
            if done:
                control.record(connection, actor(), "discard", reason=reason, jobs=1, ids=[read_id(job)])
        if not done:
            raise BadInput(f"job {job} is not failed; see: pipeline status {job}")
        _say_one("discarded", job, as_json)


def _noted(action: str, given: str, reason: str | None, act: dead_jobs.Act, rate: float | None = None) -> dead_jobs.Act:
    """Who does it is written down with it."""
    detail = {"cause": _find(given).cause, "per_second": rate}

    def do(connection: Connection, ids: list[UUID]) -> int:
        done = act(connection, ids)
        control.record(connection, actor(), action, reason=reason, jobs=done, ids=ids, detail=detail)
        return done

    return do


def _one_way(jobs: list[str] | None, group: str | None) -> None:
    if bool(jobs) == (group is not None):
        raise BadInput("name failed jobs (see: pipeline dead list), or one --group (see: pipeline dead groups)")


def _groups(workflow: str | None, limit: int, sort: dead_jobs.Sort = "jobs") -> list[dict[str, Any]]:
    from pipeline.front import dead_jobs

    with transaction() as connection:
        rows = dead_jobs.groups(connection, workflow, None, limit, sort=sort)
    return [{"id": _short(row["group"]), **row} for row in rows]


def _short(name: str) -> str:
    """A group's name has its cause in it and is long; people get eight characters that stand for it."""
    return blake2s(name.encode(), digest_size=4).hexdigest()


def _find(given: str) -> Group:
    from pipeline.front.dead_jobs import Group

    found = [row["group"] for row in _groups(None, 1000) if given in (row["id"], row["group"])]
    if len(found) != 1:
        raise BadInput(f"there is no group {given!r} of failed jobs (any more); see: pipeline dead groups")
    return Group.named(found[0])


def _of_group(given: str, act: dead_jobs.Act, most: int, again: bool = True) -> tuple[int, bool]:
    """So many jobs a transaction, until the group is empty or, without ``again``, once."""
    from pipeline.front import dead_jobs

    group, total = _find(given), 0
    while True:
        with transaction() as connection:
            done, more = dead_jobs.of_group(connection, group, most, act)
        total += done
        if not (again and more and done):
            return total, more


def _say_one(what: str, job: str, as_json: bool) -> None:
    """At once: if the next job is refused, this one is done all the same."""
    print(json.dumps({"job": job, "done": what}) if as_json else f"{what} {job}")


def _say(what: str, found: tuple[int, bool], as_json: bool) -> None:
    jobs, more = found
    if as_json:
        print(json.dumps({"jobs": jobs, "more": more}))
        return
    print(f"{what} {jobs} {'job' if jobs == 1 else 'jobs'}" + ("; the group has more" if more else ""))
