"""Commands about jobs: submit, jobs, status, cancel, replay, workers."""

from __future__ import annotations

import json
import sys
from socket import gethostname
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column, Table

from pipeline.declare.errors import BadInput
from pipeline.declare.states import Status
from pipeline.front.cli.console import console
from pipeline.front.cli.workflows import check_phase, need_workflows
from pipeline.front.database import transaction
from pipeline.journey import submit as steer
from pipeline.store import inspect

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
out = console()


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (submit, jobs, status, cancel, replay, workers):
        app.command()(command)


def submit(
    workflow: Annotated[str, typer.Argument(help="For example: orders")],
    body: Annotated[str, typer.Argument(help="A JSON object, or - to read it from standard input.")] = "{}",
    priority: Annotated[int, typer.Option(help="0 … 9; 9 goes first.")] = 0,
    key: Annotated[str | None, typer.Option(help="The same key gives the same job.")] = None,
    as_json: Json = False,
) -> None:
    """Submit a job and print its id."""
    parsed = _parse(sys.stdin.read() if body == "-" else body)
    with transaction() as connection:
        job = steer.submit(connection, workflow, parsed, priority=priority, key=key)
    print(json.dumps({"id": str(job)}) if as_json else job)


def jobs(
    *,
    workflow: Annotated[str | None, typer.Option(help="Only jobs of this workflow.")] = None,
    phase: Annotated[str | None, typer.Option(help="Only jobs in this phase.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="JOB", help="The next page: jobs older than this one.")] = None,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    found = _list(workflow, phase, status, None if after is None else read_id(after), limit)
    if as_json:
        print(json.dumps(found, default=str))
        return
    table = Table(job_column(), "phase", "status", "created", "wait reason or error", title=f"{len(found)} jobs")
    for row in found:
        table.add_row(
            str(row["id"]),
            f"{row['workflow']}.{row['phase']}",
            row["status"],
            f"{row['created_at']:%F %T}",
            escape((row["wait_reason"] or row["error_message"] or "")[:80]),
        )
    out.print(table)
    if len(found) == limit:
        print(f"for older ones, add: --after {found[-1]['id']}")


def _list(
    workflow: str | None, phase: str | None, status: Status | None, before: UUID | None, limit: int
) -> list[dict[str, Any]]:
    """As many as were asked for: a page can be short although older jobs match as well."""
    found: list[dict[str, Any]] = []
    with transaction() as connection:
        check_phase(connection, workflow, phase)
    while True:
        with transaction() as connection:
            page, before = inspect.jobs(
                connection, workflow=workflow, phase=phase, status=status, before=before, limit=limit - len(found)
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
    """Fails when the job is not failed."""
    with transaction() as connection:
        done = steer.replay(connection, read_id(job))
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
        "wait_reason",
        "next_retry_at",
        "locked_by",
        "error_message",
    ):
        if job[name]:
            out.print(f"  {name.replace('_', ' ')}: {job[name]}", highlight=False, markup=False)
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
    if job["result"]:
        out.print_json(data=job["result"])
    if found["output"]:
        out.print_json(data=json.loads(json.dumps(found["output"], default=str)))


def _parse(body: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        raise BadInput(
            f'the body is not JSON ({error}); write for example \'{{"url": "https://example.org"}}\''
        ) from None
    if not isinstance(value, dict):
        raise BadInput('the body must be a JSON object such as {"url": "https://example.org"}')
    return value


def read_id(value: str) -> UUID:
    """A job's id as people type it; raises BadInput."""
    try:
        return UUID(value)
    except ValueError:
        raise BadInput(f"{value!r} is not a job id; ids look like 01a1e35a-acab-720d-861a-d34a819014b2") from None
