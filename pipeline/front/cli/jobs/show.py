"""Commands about one job: status, logs."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pipeline.declare.errors import BadInput
from pipeline.front.advice import advice
from pipeline.front.cli.console import Json, console
from pipeline.front.cli.jobs.commands import read_id
from pipeline.front.cli.waits import words
from pipeline.front.cli.workflows import need_workflows
from pipeline.front.database import transaction
from pipeline.store import inspect

out = console()
# What a terminal would act upon.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FACTS = (
    "attempts",
    "crashes",
    "priority",
    "rate_limit",
    "trace_id",
    "idempotency_key",
    "expires_at",
    "locked_by",
    "cause",
    "error_message",
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (status, logs):
        app.command()(command)


def status(job: str, as_json: Json = False) -> None:
    """Show a job: where it is, where its time went, why it failed, and what its workflow stored."""
    need_workflows()  # they say how to read what they stored
    found = inspect.describe(read_id(job))
    found["advice"] = advice(found)
    if as_json:
        print(json.dumps(found, default=str))
        return
    show(found)


def logs(
    job: str,
    fence: Annotated[
        int | None, typer.Option("--fence", help="Only the attempt with this fence; without it, all that failed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show why a job's attempts failed: their tracebacks, and what their phases logged last."""
    job_id = read_id(job)
    with transaction() as connection:
        if inspect.status(connection, job_id) is None:
            raise BadInput(f"there is no job {job}; was it pruned, or is this another database?")
        found = [one for one in inspect.logs(connection, job_id) if fence in (None, one["fence"])]
    if as_json:
        print(json.dumps(found, default=str))
        return
    if not found:
        print("nothing was kept: attempts that succeed or wait keep nothing, and those of a killed worker cannot")
    for one in found:
        _print_log(one)


def show(found: dict[str, Any]) -> None:
    """One job for people."""
    job = found["job"]
    out.print(
        f"[bold]{job['id']}[/bold]  {job['workflow']}.{job['phase']}  [bold]{job['status']}[/bold]", highlight=False
    )
    for name in FACTS:
        if job[name] and (name != "cause" or job["status"] == "failed"):
            out.print(f"  {name.replace('_', ' ')}: {job[name]}", highlight=False, markup=False)
    for name in ("waits_for", "due_at"):
        # What somebody has to bring is said below, in more words.
        if found[name] and not found["waiting"]:
            out.print(f"  {name.replace('_', ' ')}: {found[name]}", highlight=False, markup=False)
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
            escape((part["error"] or "")[:80]),
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
    if found["why"] is not None and job["status"] != "succeeded":
        _print_log(found["why"])
        print(f"all of its attempts: pipeline logs {job['id']}")


def _print_log(one: dict[str, Any]) -> None:
    """As it was written: nothing in it is markup or moves the cursor, and nothing is cut to the terminal's width."""
    ended = f"{one['outcome']} {one['finished_at']:%F %T %Z}"
    print(f"\n{one['phase']}, try {one['attempt']} (fence {one['fence']}): {ended}")
    for text in (one["traceback"], one["lines"] and f"last lines:\n{one['lines']}"):
        for line in (text or "").splitlines():
            print(f"  {CONTROL.sub('�', line)}")


def _steps(found: list[dict[str, Any]]) -> Table:
    """The oldest first."""
    table = Table("phase", "step", "kept", "bytes", "result")
    for step in reversed(found):
        preview = step["preview"] if len(step["preview"]) <= 80 else f"{step['preview'][:80]}…"
        table.add_row(step["phase"], escape(step["name"]), f"{step['at']:%F %T}", str(step["size"]), escape(preview))
    return table
