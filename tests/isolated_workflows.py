"""Workflows with isolated phases. A worker that knows them starts a fork server, which imports everything again.

For the tests that are about them: ``place.worker(PIPELINE_WORKFLOWS=ISOLATED)``.
"""

from __future__ import annotations

from pipeline import Done, Job, Workflow
from tests import typed_workflows as typed_workflows
from tests.actions import ACTIONS, ledger, record
from tests.async_workflows import QUICK, async_write, wait
from tests.step_workflows import hold_later, ten

caged = Workflow("caged")


@caged.phase("act", isolated=True, memory_limit=2 << 30, time_limit=90, pool=None, backoff=QUICK)
def caged_act(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


hasty = Workflow("hasty")


@hasty.phase("act", isolated=True, time_limit=3, pool=None, max_crashes=1)
def hasty_act(job: Job) -> object:
    return ACTIONS[job.body["do"]](job)


# A phase of each kind after the other.
mixed = Workflow("mixed")
mixed_loop = mixed.phase("on-loop", backoff=QUICK)(wait)


@mixed.phase("in-thread", backoff=QUICK)
def in_thread(job: Job) -> Done:
    record(job)
    return ledger(job)


@mixed.phase("in-child", isolated=True, backoff=QUICK)
async def in_child(job: Job) -> Done:
    record(job)
    assert await job.read("SELECT 1 AS one") == [{"one": 1}]
    return await async_write(job)


mixed_last = mixed.phase("on-loop-again", backoff=QUICK)(wait)

# Steps in a child process, from the first attempt on.
staged = Workflow("staged")
staged_act = staged.phase("act", backoff=QUICK, isolated=True, max_crashes=500)(ten)
held_child = Workflow("held-child")
held_child_act = held_child.phase("act", backoff=QUICK, time_limit=60, isolated=True)(hold_later)
