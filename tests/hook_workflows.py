"""Workflows with hooks and something around every attempt. Loaded by the workers of tests/flow/test_hooks.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import text
from typing_extensions import TypedDict

from pipeline import Done, Job, Permanent, Workflow

INSERT = text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)")


class Ended(TypedDict):
    job: str
    workflow: str
    phase: str
    state: str
    error: str | None
    body: dict[str, Any] | None
    result: Any
    ended_at: str
    team: str


tell = Workflow("tell-the-owner", body=Ended)


@tell.phase
def write(job: Job[Ended]) -> Done:
    """One row for each hook's job, under the id of the job that ended."""
    values = {"job": job.body["job"], "phase": job.body["state"], "fence": 0}
    return Done(dict(job.body), write=[(INSERT, values)])


watched = Workflow("watched")
seen: list[str] = []


@watched.around
@contextmanager
def noted(job: Job[Any]) -> Iterator[None]:
    seen.append(job.phase)
    yield
    seen.pop()


def act(job: Job) -> list[str]:
    if job.body.get("fail") == job.phase:
        raise Permanent("it cannot be done")
    time.sleep(job.body.get("seconds", 0))
    return list(seen)


@watched.phase
def in_a_thread(job: Job) -> list[str]:
    return act(job)


@watched.phase
async def on_the_loop(job: Job) -> list[str]:
    await asyncio.sleep(0)
    return act(job)


@watched.phase(isolated=True)
def in_a_child(job: Job) -> list[str]:
    return act(job)


watched.on_failure(tell, team="night shift")
watched.on_success(tell, team="sales")
watched.on_cancel(tell, team="support")
