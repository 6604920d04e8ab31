"""Workflows with ``async def`` phases, each doing what its body says. Imported by tests/workflows.py."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from contextlib import suppress

from sqlalchemy import text

from pipeline import Backoff, Done, Job, Transient, Workflow
from pipeline.worker.loop_writes import LoopConnection
from tests.actions import ledger, record, speak

QUICK = Backoff(schedule=(0.05,), jitter=0)

INSERT = "INSERT INTO ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)"


async def wait(job: Job) -> Done:
    record(job)
    time.sleep(float(job.body.get("block", 0)))
    if job.fence == 1 or not job.body.get("once"):
        await asyncio.sleep(float(job.body.get("seconds", 0)))
    return ledger(job)


async def _wait(job: Job) -> Done:
    await asyncio.sleep(float(job.body.get("seconds", 0)))
    return ledger(job)


swift = Workflow("swift")
swift_first = swift.phase("first", backoff=QUICK)(wait)
swift_second = swift.phase("second", backoff=QUICK)(wait)
swift_third = swift.phase("third", backoff=QUICK)(wait)

lithe = Workflow("lithe")


@lithe.phase("act", backoff=QUICK, time_limit=4, max_crashes=3)
async def act(job: Job) -> object:
    """Do what the body asks for."""
    record(job)
    return await ACTIONS[job.body.get("do", "wait")](job)


async def _read_keep_progress(job: Job) -> Done:
    [row] = await job.read("SELECT count(*) AS n FROM ledger WHERE job_id = :job", job=job.id)
    assert row["n"] == 0
    await job.keep(INSERT, job=job.id, phase="kept", fence=job.fence)
    await job.progress(1, 2)
    await job.limit("async-tests")
    return ledger(job)


async def _forgotten_await(job: Job) -> Done:
    job.keep(INSERT, job=job.id, phase="kept", fence=job.fence)
    return Done()


async def async_write(job: Job) -> Done:
    async def write(db: LoopConnection) -> None:
        await asyncio.sleep(0)
        await db.execute(text(INSERT), {"job": job.id, "phase": job.phase, "fence": job.fence})
        count = "SELECT count(*) FROM ledger WHERE job_id = :job AND phase = :phase"
        assert await db.scalar(text(count), {"job": job.id, "phase": job.phase}) == 1

    return Done({"written": True}, write=write)


async def _fail(job: Job) -> None:
    raise Transient("the outside world is away")


async def _flaky(job: Job) -> Done:
    if job.attempt < 2:
        raise RuntimeError("once")
    return ledger(job)


async def _exit(job: Job) -> None:
    raise SystemExit(3)


async def _swallow(job: Job) -> Done:
    """Does not end when it is cancelled, in its first attempt."""
    until = time.monotonic() + (60 if job.fence == 1 else 0)
    while time.monotonic() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(until - time.monotonic())
    return ledger(job)


async def _block(job: Job) -> Done:
    """Blocks the loop, in its first attempt."""
    if job.fence == 1:
        time.sleep(float(job.body.get("seconds", 3600)))
    return ledger(job)


async def _die(job: Job) -> Done:
    if job.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return ledger(job)


async def _log(job: Job) -> Done:
    await asyncio.sleep(0.01)
    logging.getLogger("tests.phase").warning("from inside")
    return ledger(job)


async def _speak(job: Job) -> Done:
    await asyncio.sleep(0)
    return speak(job)


ACTIONS = {
    "speak": _speak,
    "wait": _wait,
    "services": _read_keep_progress,
    "forgotten": _forgotten_await,
    "async_write": async_write,
    "fail": _fail,
    "flaky": _flaky,
    "exit": _exit,
    "swallow": _swallow,
    "block": _block,
    "die": _die,
    "log": _log,
}
