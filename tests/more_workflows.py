"""Workflows that only some tests run: pools, throttles, order, limits, and the options of users who give none."""

from __future__ import annotations

import time

from pipeline import Done, Job, Workflow
from pipeline.declare.phase import Throttle
from tests.actions import ACTIONS, ledger, record
from tests.workflows import QUICK, pair_act, pair_first, work

# Earlier phases go first.
starter = Workflow("starter", order="start-first")
starter_first = starter.phase("first", backoff=QUICK)(work)
starter_second = starter.phase("second", backoff=QUICK)(work)
starter_third = starter.phase("third", backoff=QUICK)(work)

pooled = Workflow("pooled")


@pooled.phase("narrow", pool=3)
def narrow(job: Job) -> Done:
    record(job)
    time.sleep(float(job.body.get("seconds", 0)))
    return ledger(job)


paced = Workflow("paced")


@paced.phase("slowly", pool=None, throttle=Throttle(count=2, seconds=0.5))
def slowly(job: Job) -> None:
    record(job)


small = Workflow("small")


@small.phase("queue", pool=None, queue_limit=5)
def small_queue(job: Job) -> None:
    record(job)


strict = Workflow("strict")
strict_first = strict.phase("first", pool=None)(pair_first.work)
strict_act = strict.phase("act", pool=None, max_attempts=1)(pair_act.work)


# With the options that a user gets who gives none, and a time limit that a test can wait for.
everyday = Workflow("everyday")


@everyday.phase
def usual(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


brief = Workflow("brief")


@brief.phase(time_limit=2, pool=4)
def two_seconds(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)
