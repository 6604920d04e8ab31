"""Workflows that most tests run: each does what its body says. A real worker imports this module.

A worker declares the queues of all phases that it loads, which may cost RabbitMQ more than the test itself: what few
tests need is in modules of its own (see tests/place.py).
"""

from __future__ import annotations

import faulthandler
import signal
import time

from pipeline import Backoff, Done, Job, Workflow
from tests.actions import ACTIONS, ledger, record, wait_until_told

# A test that waits in vain asks its workers where their threads are (see tests/place.py). They write to the log itself:
# Dramatiq's stderr is a pipe that expects its own kind of lines.
faulthandler.register(signal.SIGUSR2, file=2)

QUICK = Backoff(schedule=(0.05,), jitter=0)


def work(job: Job) -> Done:
    record(job)
    time.sleep(float(job.body.get("seconds", 0)))
    wait_until_told(job)
    return ledger(job)


triple = Workflow("triple")
first = triple.phase("first", pool=None, backoff=QUICK)(work)
second = triple.phase("second", pool=None, backoff=QUICK)(work)
third = triple.phase("third", pool=None, backoff=QUICK)(work)

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


pair = Workflow("pair")


@pair.phase("first", pool=None)
def pair_first(job: Job) -> Done:
    record(job)
    return ledger(job)


@pair.phase("act", pool=None, backoff=QUICK, time_limit=30)
def pair_act(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)
