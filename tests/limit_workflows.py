"""Workflows whose phases share something outside by name, for tests of limits and breakers alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pipeline import Breaker, Job, Limit, Snooze, Transient, Workflow
from tests.actions import record
from tests.workflows import QUICK

# Each kind of phase, none of them the first of its job.
limited = Workflow("limited")


@limited.phase
def begin(job: Job) -> None:
    return None


@limited.phase(limit=Limit("flow-api", rate="20/s", burst=1))
def in_thread(job: Job) -> None:
    record(job)


@limited.phase(limit="flow-api")
async def in_loop(job: Job) -> None:
    record(job)


@limited.phase(limit="flow-api", isolated=True)
def in_child(job: Job) -> None:
    record(job)


told = Workflow("told")


@told.phase(limit="flow-told", backoff=QUICK)
def asks(job: Job) -> None:
    if job.body.get("told"):
        raise Snooze(job.body["told"], "retry_after", "429", asked=True)


steady = Workflow("steady")


@steady.phase(limit=Limit("steady", rate="20/s", burst=10))
def tick(job: Job) -> None:
    record(job)


shops = Workflow("shops")


@shops.phase(limit=Limit("shop:{shop}", rate="100/s"))
def visit(job: Job) -> None:
    record(job)


def outside(job: Job) -> None:
    """As the outside system is just now: a file beside the record says so."""
    record(job)
    state = Path(os.environ["TEST_RECORD"]).with_name("outside")
    match state.read_text() if state.exists() else "":
        case "away":
            raise Transient("it is away")
        case "hangs":
            time.sleep(600)


bazaar = Workflow("bazaar")
bazaar_call = bazaar.phase("call", breaker=Breaker("bazaar", failures=3, pause=1, probe=2), backoff=QUICK)(outside)
boxed = Workflow("boxed")
boxed_call = boxed.phase("call", breaker=Breaker("cage", failures=2, pause=1), isolated=True, backoff=QUICK)(outside)
inner = Workflow("inner")


@inner.phase(backoff=QUICK)
async def guarded(job: Job) -> None:
    async with Breaker("inner", failures=2, pause=1).calling(job):
        outside(job)
