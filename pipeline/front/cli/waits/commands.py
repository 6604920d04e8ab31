"""Commands about events of jobs: signal, event-link."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any

import typer

from pipeline.declare.errors import BadInput, Misuse
from pipeline.declare.job import PLAIN
from pipeline.declare.registry import check_event_body
from pipeline.declare.waits.next import check_event
from pipeline.event_links import event_link
from pipeline.front.cli.console import Json
from pipeline.front.cli.jobs import bodies
from pipeline.front.cli.jobs.commands import read_id
from pipeline.front.cli.times import seconds_of
from pipeline.front.cli.workflows import load_workflows
from pipeline.front.database import transaction
from pipeline.front.whoami import actor
from pipeline.journey import submit as steer
from pipeline.store import inspect
from pipeline.store.control import actions as control
from pipeline.store.inspect import waits

SAID = {
    "delivered": "the job waited for it and continues",
    "kept": "the job does not wait for it now; it is kept until it does",
}
Event = Annotated[str, typer.Argument(help="The name that the phase waits for, such as approved.")]
Words = Annotated[
    list[str] | None,
    typer.Argument(help="JSON, - to read it from standard input, or words such as by=Ada note=fine.", metavar="BODY"),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(signal)
    app.command("event-link")(link)


def signal(job: str, event: Event, body: Words = None, as_json: Json = False) -> None:
    """Tell a job of an event: one that waits for it continues, with the body as the result of the waiting phase."""
    load_workflows()  # they say of what type the body is
    job_id, told = read_id(job), bodies.read_any(body or [])
    with transaction() as connection:
        _check(connection, job, event, told)
        answer = steer.signal(connection, job_id, event, told)
        if answer in ("delivered", "kept"):
            control.record(connection, actor(), "signal", subject=event, jobs=1, ids=[job_id])
    if answer == "unknown_job":
        raise BadInput(f"there is no job {job}; was it pruned, or is this another database?")
    if answer == "final":
        raise BadInput(f"job {job} has ended and takes no more events; see: pipeline status {job}")
    print(json.dumps({"id": str(job_id), "event": event, "answer": answer}) if as_json else f"{answer}: {SAID[answer]}")


def link(
    job: str,
    event: Event,
    body: Words = None,
    expires: Annotated[str, typer.Option(metavar="TIME", help="How long it works: 2h, 7d.")] = "7d",
) -> None:
    """Print a link by which whoever has it can tell the job of the event, once."""
    load_workflows()
    job_id, told = read_id(job), bodies.read_any(body or [])
    until = timedelta(seconds=seconds_of("--expires", expires))
    with transaction() as connection:
        status = inspect.status(connection, job_id)
        if status is None:
            raise BadInput(f"there is no job {job}; was it pruned, or is this another database?")
        if status in ("succeeded", "failed", "cancelled"):
            raise BadInput(f"job {job} has ended: it is {status}")
        _check(connection, job, event, told if body else ...)
        control.record(connection, actor(), "make event link", subject=event, jobs=1, ids=[job_id])
    print(event_link(job_id, event, expires=until, body=told))


def _check(connection: Any, job: str, event: str, body: Any) -> None:
    """BadInput if the body cannot be what the job waits for; ``...``: there is none."""
    try:
        check_event(event)
    except Misuse as error:
        raise BadInput(str(error)) from None
    waiting = waits.waiting_phase(connection, read_id(job), event)
    if waiting is not None and body is not ...:
        check_event_body(*waiting, event, PLAIN.encode(body))
