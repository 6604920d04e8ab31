"""Workflows that the tests run: each does what its body says. A real worker imports this module."""

from __future__ import annotations

import faulthandler
import signal
import time

from pipeline import Backoff, Done, Job, Workflow
from pipeline.declare.phase import Throttle
from tests import async_workflows as async_workflows
from tests import step_workflows as step_workflows
from tests.actions import ACTIONS, ledger, record

# A test that waits in vain asks its workers where their threads are (see tests/place.py). They write to the log itself:
# Dramatiq's stderr is a pipe that expects its own kind of lines.
faulthandler.register(signal.SIGUSR2, file=2)

QUICK = Backoff(schedule=(0.05,), jitter=0)


def work(job: Job) -> Done:
    record(job)
    time.sleep(float(job.body.get("seconds", 0)))
    return ledger(job)


triple = Workflow("triple")
first = triple.phase("first", pool=None, backoff=QUICK)(work)
second = triple.phase("second", pool=None, backoff=QUICK)(work)
third = triple.phase("third", pool=None, backoff=QUICK)(work)

# Earlier phases go first.
starter = Workflow("starter", order="start-first")
starter_first = starter.phase("first", backoff=QUICK)(work)
starter_second = starter.phase("second", backoff=QUICK)(work)
starter_third = starter.phase("third", backoff=QUICK)(work)

plain = Workflow("plain")


@plain.phase("alpha", pool=None)
def alpha(job: Job) -> dict[str, int]:
    return {"n": 1}


@plain.phase("beta", pool=None)
def beta(job: Job) -> None:
    assert job.results == {"alpha": {"n": 1}}


@plain.phase("gamma", pool=None)
def gamma(job: Job) -> None:
    return None


single = Workflow("single")


@single.phase("act", pool=None, backoff=QUICK, time_limit=30)
def act(job: Job) -> object:
    """Do what the body asks for."""
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


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


pair = Workflow("pair")


@pair.phase("first", pool=None)
def pair_first(job: Job) -> Done:
    record(job)
    return ledger(job)


@pair.phase("act", pool=None, backoff=QUICK, time_limit=30)
def pair_act(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


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
