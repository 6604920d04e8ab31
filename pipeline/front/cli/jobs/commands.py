"""Commands about jobs: submit, jobs, result, cancel, replay."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any, cast, get_args
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column, Table
from sqlalchemy import Connection

from pipeline.declare.errors import BadInput, JobCancelled, JobFailed
from pipeline.declare.options import Until
from pipeline.declare.registry import body_codec
from pipeline.declare.states import Status
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.jobs import bodies, many
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.workflows import load_workflows
from pipeline.front.database import transaction
from pipeline.front.many import cancel as cancel_many
from pipeline.front.many import noted, to_cancel, to_replay
from pipeline.front.many import replay as replay_many
from pipeline.front.whoami import actor
from pipeline.handle import JobHandle
from pipeline.journey import submit as steer
from pipeline.store import inspect
from pipeline.store.control import actions as control
from pipeline.store.gateway import client
from pipeline.store.gateway.callers import run
from pipeline.store.gateway.client import Where

out = console()
MATCH = "All jobs that match: workflow, phase, status, tag, since, until, id, error."


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(cls=bodies.WithBody)(submit)
    for command in (jobs, result, cancel, replay):
        app.command()(command)


def submit(
    workflow: Annotated[str, typer.Argument(help="For example: orders")],
    body: Annotated[
        list[str] | None,
        typer.Argument(help="A JSON object, - to read it from standard input, or words such as order=17 note=quick."),
    ] = None,
    *,
    priority: Annotated[int, typer.Option(help="0 … 9; 9 goes first.")] = 0,
    key: Annotated[str | None, typer.Option(help="The same key gives the same job.")] = None,
    unique: Annotated[
        str | None, typer.Option(metavar="open|replace|TIME", help="How long the key, or the body, stays the job's.")
    ] = None,
    delay: Annotated[str | None, typer.Option(metavar="TIME", help="Not before so long after now.")] = None,
    debounce: Annotated[str | None, typer.Option(metavar="TIME", help="Due so long after the last submit.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="A word to find the job by; may be repeated.")] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Fail unless it has begun by then: 90s, 2h.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Submit a job and print its id. With a workflow's name, --help also shows the fields of its body."""
    load_workflows()  # they say of what type the body is
    parsed = bodies.read(workflow, body or [])
    with transaction() as connection:
        job = steer.submit(
            connection,
            workflow,
            parsed,
            priority=priority,
            key=key,
            unique=cast(Until, unique) if unique in get_args(Until) else _span("--unique", unique),
            debounce=_span("--debounce", debounce),
            tags=tags,
            delay=_span("--delay", delay),
            expires=_span("--expires", expires),
        )
    print(json.dumps({"id": str(job)}) if as_json else job)


def jobs(
    *,
    workflow: Annotated[str | None, typer.Option(help="Only jobs of this workflow.")] = None,
    phase: Annotated[str | None, typer.Option(help="Only jobs in this phase.")] = None,
    status: Annotated[str | None, typer.Option(metavar="STATE", help="A state, or unfinished.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Submitted since then: 2h, or a date.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Submitted before then: 2h, or a date.")] = None,
    id: Annotated[str | None, typer.Option(metavar="DIGITS", help="The beginning of the id.")] = None,  # noqa: A002
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="A text in the error, in any case.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="JOB", help="The next page: jobs older than this one.")] = None,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    before = None if after is None else read_id(after)
    wanted = many.where_of(
        workflow=workflow, phase=phase, status=status, tag=tag, since=since, until=until, id=id, error=error
    )
    found = _list(wanted, before, limit)
    if as_json:
        print(json.dumps(found, default=str))
        return
    columns = ("phase", "status", "created", "tags", "wait reason or error")
    table = Table(job_column(), *columns, title=f"{len(found)} jobs")
    for row in found:
        table.add_row(
            str(row["id"]),
            f"{row['workflow']}.{row['phase']}",
            row["status"],
            f"{row['created_at']:%F %T}",
            escape(", ".join(row["tags"])),
            escape((row["wait_reason"] or row["error_message"] or "")[:80]),
        )
    out.print(table)
    if len(found) == limit:
        print(f"for older ones, add: --after {found[-1]['id']}")


def _list(where: Where, before: UUID | None, limit: int) -> list[dict[str, Any]]:
    """As many as were asked for: a page can be short although older jobs match as well."""
    found: list[dict[str, Any]] = []
    while True:
        with transaction() as connection:
            ids, before = client.find(connection, where, before, limit - len(found))
            found += inspect.jobs(connection, ids)
        if before is None or len(found) == limit:
            return found


def job_column() -> Column:
    """The id is what the next command needs: it is never cut, however narrow the terminal."""
    return Column("job", no_wrap=True, min_width=36)


def result(
    job: str,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for the end of the job.")] = 0,
    as_json: Json = False,
) -> None:
    """Print what a job's last phase returned."""
    try:
        found = JobHandle[Any](read_id(job)).result(wait)
    except (JobFailed, JobCancelled, TimeoutError) as error:
        raise BadInput(str(error)) from None
    if as_json:
        print(json.dumps(found))
        return
    out.print_json(data=found)


def cancel(
    job: Annotated[str | None, typer.Argument(help="A job's id.")] = None,
    where: Annotated[str | None, typer.Option("--where", help=MATCH)] = None,
    reason: Annotated[str, typer.Option(help="Why; it stays with the job.")] = "cancelled by request",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Cancel a job that has not ended, or all that match; nothing of running attempts is kept."""
    if (wanted := _one_way(job, where)) is not None:
        chosen = to_cancel(wanted)
        done = many.do("cancel", chosen, noted(cancel_many(reason), actor(), "cancel", chosen, reason), yes=yes)
        print(f"cancelled {done} jobs")
        return
    with transaction() as connection:
        cancelled = steer.cancel(connection, read_id(str(job)), reason)
        if cancelled:
            control.record(connection, actor(), "cancel", reason=reason, jobs=1, ids=[read_id(str(job))])
    if not cancelled:
        raise BadInput(f"job {job} does not exist or has already finished; see: pipeline status {job}")
    print(f"cancelled {job}")


def replay(
    job: Annotated[str | None, typer.Argument(help="A job's id.")] = None,
    where: Annotated[str | None, typer.Option("--where", help=MATCH)] = None,
    body: Annotated[str | None, typer.Option(metavar="JSON", help="In place of the job's body.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; see: pipeline audit.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Run the phase of a failed or cancelled job again, or of all that match, with fresh budgets."""
    if (wanted := _one_way(job, where)) is not None:
        if body is not None:
            raise BadInput("--body is for one job")
        chosen = to_replay(wanted)
        done = many.do("replay", chosen, noted(replay_many, actor(), "replay", chosen, reason), yes=yes)
        print(f"sent again {done} jobs")
        return
    send_again(str(job), body, reason)
    print(f"sent again {job}")


def _one_way(job: str | None, where: str | None) -> Where | None:
    """The filter, or None if a job is named."""
    if (job is None) == (where is None):
        raise BadInput(f"name a job, or say which: {many.EXAMPLE}")
    return None if where is None else many.read(where)


def send_again(job: str, body: str | None = None, reason: str | None = None) -> None:
    """Fails when the job is neither failed nor cancelled, or when another one has its key."""
    with transaction() as connection:
        encoded = None if body is None else _body(connection, job, body)
        done = run(connection, client.replay(read_id(job), encoded))
        if done:
            detail = None if body is None else {"body": "another"}
            control.record(connection, actor(), "replay", reason=reason, jobs=1, ids=[read_id(job)], detail=detail)
        now = inspect.status(connection, read_id(job))
    if not done and now in (Status.FAILED, Status.CANCELLED):
        raise BadInput(f"job {job} was not replayed: {inspect.WITHOUT_ITS_KEY}")
    if not done:
        raise BadInput(f"job {job} is not failed or cancelled; there is nothing to replay; see: pipeline status {job}")


def _body(connection: Connection, job: str, body: str) -> str:
    """As the job's workflow has it."""
    load_workflows()
    found = inspect.row(connection, read_id(job))
    if found is None:
        raise BadInput(f"there is no job {job}")
    workflow = found["workflow"]
    return body_codec(workflow).encode(bodies.read(workflow, [body])).decode()


def _span(option: str, time: str | None) -> timedelta | None:
    return None if time is None else timedelta(seconds=seconds_of(option, time))


def read_id(value: str) -> UUID:
    """A job's id as people type it; raises BadInput."""
    try:
        return UUID(value)
    except ValueError:
        raise BadInput(f"{value!r} is not a job id; ids look like 01a1e35a-acab-720d-861a-d34a819014b2") from None
