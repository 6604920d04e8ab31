"""Commands about jobs: submit, jobs, status, result, cancel, replay, workers."""

from __future__ import annotations

import json
from datetime import timedelta
from socket import gethostname
from typing import Annotated, Any, cast, get_args
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column, Table

from pipeline.declare.errors import BadInput, JobCancelled, JobFailed
from pipeline.declare.options import Until
from pipeline.declare.states import Status
from pipeline.front.cli import bodies
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.waits import words
from pipeline.front.cli.workflows import check_phase, load_workflows, need_workflows
from pipeline.front.database import transaction
from pipeline.handle import JobHandle
from pipeline.journey import submit as steer
from pipeline.store import inspect

out = console()


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(cls=bodies.WithBody)(submit)
    for command in (jobs, status, result, cancel, replay, workers):
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
            expires=_span("--expires", expires),
        )
    print(json.dumps({"id": str(job)}) if as_json else job)


def jobs(
    *,
    workflow: Annotated[str | None, typer.Option(help="Only jobs of this workflow.")] = None,
    phase: Annotated[str | None, typer.Option(help="Only jobs in this phase.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only jobs in this state.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="JOB", help="The next page: jobs older than this one.")] = None,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    before = None if after is None else read_id(after)
    found = _list(before, limit, workflow=workflow, phase=phase, status=status, tag=tag)
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


def _list(
    before: UUID | None,
    limit: int,
    *,
    workflow: str | None,
    phase: str | None,
    status: Status | None,
    tag: str | None,
) -> list[dict[str, Any]]:
    """As many as were asked for: a page can be short although older jobs match as well."""
    found: list[dict[str, Any]] = []
    with transaction() as connection:
        check_phase(connection, workflow, phase)
    while True:
        with transaction() as connection:
            page, before = inspect.jobs(
                connection,
                workflow=workflow,
                phase=phase,
                status=status,
                tag=tag,
                before=before,
                limit=limit - len(found),
            )
        found += page
        if before is None or len(found) == limit:
            return found


def job_column() -> Column:
    """The id is what the next command needs: it is never cut, however narrow the terminal."""
    return Column("job", no_wrap=True, min_width=36)


def status(job: str, as_json: Json = False) -> None:
    """Show a job: where it is, where its time went, and what its workflow stored."""
    need_workflows()  # they say how to read what they stored
    found = inspect.describe(read_id(job))
    if as_json:
        print(json.dumps(found, default=str))
        return
    show(found)


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


def cancel(job: str) -> None:
    """Cancel a job that has not ended; nothing of a running attempt is kept."""
    with transaction() as connection:
        done = steer.cancel(connection, read_id(job))
    if not done:
        raise BadInput(f"job {job} does not exist or has already finished; see: pipeline status {job}")
    print(f"cancelled {job}")


def replay(job: str) -> None:
    """Run a failed job's phase again, with fresh budgets."""
    send_again(job)
    print(f"sent again {job}")


def send_again(job: str) -> None:
    """Fails when the job is not failed, or when another one has its key."""
    with transaction() as connection:
        done = steer.replay(connection, read_id(job))
        now = inspect.status(connection, read_id(job))
    if not done and now == Status.FAILED:
        raise BadInput(f"job {job} was not replayed: {inspect.WITHOUT_ITS_KEY}")
    if not done:
        raise BadInput(f"job {job} is not failed, so there is nothing to replay; see: pipeline status {job}")


def workers(
    as_json: Json = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Exit non-zero unless every worker on this host is alive and consuming.")
    ] = False,
) -> None:
    """Worker processes, living and recently gone."""
    rows = inspect.workers()
    if ready:
        _all_ready([row for row in rows if row["host"] == gethostname() and row["state"] != "stopped"])
        return
    if as_json:
        print(json.dumps(rows, default=str))
        return
    table = Table("worker", "state", "threads", "running", "stuck", "heartbeat", "since")
    for row in rows:
        table.add_row(
            row["id"],
            row["state"],
            str(row["threads"]),
            str(row["running"]),
            str(row["stuck"] or ""),
            f"{row['age']:.0f} s ago",
            f"{row['started_at']:%F %T}",
        )
    out.print(table)


def _all_ready(rows: list[dict[str, Any]]) -> None:
    """For a container's health check: a worker that lives and hears nothing is no worker."""
    wrong = [
        f"{row['id']} is {row['state']}: {', '.join(row['not_consuming'])}" for row in rows if row["state"] != "alive"
    ]
    if not rows or wrong:
        raise BadInput(
            "; ".join(wrong) or f"no worker runs on {gethostname()}: start one with dramatiq pipeline.actors"
        )
    print(f"{len(rows)} ready")


def show(found: dict[str, Any]) -> None:
    """One job for people."""
    job = found["job"]
    out.print(
        f"[bold]{job['id']}[/bold]  {job['workflow']}.{job['phase']}  [bold]{job['status']}[/bold]", highlight=False
    )
    for name in (
        "attempts",
        "crashes",
        "priority",
        "trace_id",
        "idempotency_key",
        "expires_at",
        "wait_reason",
        "next_retry_at",
        "locked_by",
        "error_message",
    ):
        if job[name]:
            out.print(f"  {name.replace('_', ' ')}: {job[name]}", highlight=False, markup=False)
    if job["tags"]:
        out.print(f"  tags: {', '.join(job['tags'])}", highlight=False, markup=False)
    for line in words.lines(found):
        out.print(f"  {line}", highlight=False, markup=False)
    table = Table("phase", "try", "what", "seconds", "how it ended", "worker", "error")
    for part in found["timeline"]:
        table.add_row(
            part["phase"],
            str(part["attempt"]),
            part["part"],
            f"{part['seconds']:.3f}",
            part["outcome"] or "",
            part["worker"] or "",
            (part["error"] or "")[:80],
        )
    out.print(table)
    if found["steps"]:
        out.print(_steps(found["steps"]))
    if found["events"]:
        out.print(words.table(found["events"]))
    if job["result"]:
        out.print_json(data=job["result"])
    if found["output"] is not None:
        out.print_json(data=json.loads(json.dumps(found["output"], default=str)))


def _steps(found: list[dict[str, Any]]) -> Table:
    """The oldest first."""
    table = Table("phase", "step", "kept", "bytes", "result")
    for step in reversed(found):
        preview = step["preview"] if len(step["preview"]) <= 80 else f"{step['preview'][:80]}…"
        table.add_row(step["phase"], escape(step["name"]), f"{step['at']:%F %T}", str(step["size"]), escape(preview))
    return table


def _span(option: str, time: str | None) -> timedelta | None:
    return None if time is None else timedelta(seconds=seconds_of(option, time))


def read_id(value: str) -> UUID:
    """A job's id as people type it; raises BadInput."""
    try:
        return UUID(value)
    except ValueError:
        raise BadInput(f"{value!r} is not a job id; ids look like 01a1e35a-acab-720d-861a-d34a819014b2") from None
