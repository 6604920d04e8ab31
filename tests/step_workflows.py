"""Workflows whose phases are made of steps. Each step notes that it was called. Imported by tests/workflows.py."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from pipeline import Backoff, Done, Job, Snooze, Workflow

QUICK = Backoff(schedule=(0.05,), jitter=0)
STEPS = 10


def note(job: Job, line: str) -> None:
    """Where no transaction can take it back."""
    handle = os.open(Path(os.environ["TEST_RECORD"]).with_name("steps"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{job.id} {line}\n".encode())
    os.close(handle)


def effect(job: Job, name: str) -> dict[str, int | str]:
    """No two calls return the same."""
    note(job, f"step {name} {job.fence} {os.getpid()}")
    time.sleep(float(job.body.get("seconds", 0)))
    return {"name": name, "fence": job.fence, "at": time.time_ns()}


async def later(job: Job, name: str) -> dict[str, int | str]:
    """As ``effect``."""
    note(job, f"step {name} {job.fence} {os.getpid()}")
    await asyncio.sleep(float(job.body.get("seconds", 0)))
    return {"name": name, "fence": job.fence, "at": time.time_ns()}


def seen(job: Job, found: list[dict[str, int | str]]) -> Done:
    """What this attempt got is the phase's result."""
    assert [one["name"] for one in found] == [f"s{n}" for n in range(STEPS)]
    return Done(result={"ats": [one["at"] for one in found]})


def ten(job: Job) -> Done:
    found = []
    for n in range(STEPS):
        found.append(job.step(f"s{n}", effect, job, f"s{n}"))
        note(job, f"got s{n} {found[-1]['at']} {os.getpid()}")
    return seen(job, found)


async def ten_later(job: Job) -> Done:
    found = []
    for n in range(STEPS):
        found.append(await job.step(f"s{n}", later, job, f"s{n}"))
        note(job, f"got s{n} {found[-1]['at']} {os.getpid()}")
    return seen(job, found)


stepped = Workflow("stepped")
stepped_act = stepped.phase("act", backoff=QUICK, max_crashes=500)(ten)
strolled = Workflow("strolled")
strolled_act = strolled.phase("act", backoff=QUICK, max_crashes=500)(ten_later)


faltered = Workflow("faltered")


@faltered.phase("act", backoff=QUICK, max_attempts=5, time_limit=60)
def act(job: Job) -> Done:
    """Two steps, and between them what the body asks for, in the first attempt."""
    first = job.step("first", effect, job, "first")
    if job.step("asked", lambda: job.fence) == job.fence:
        _falter(job)
    second = job.step("second", effect, job, "second")
    return Done(result={"first": first, "second": second})


def _falter(job: Job) -> None:
    match job.body.get("do"):
        case "fail":
            raise RuntimeError("between two steps")
        case "snooze":
            raise Snooze(0.05, "elsewhere")
        case "die":
            os.kill(os.getpid(), 9)
        case "wait":
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                time.sleep(0.01)


# A step that ends when the test says so: in a thread, on the event loop, in a child.
def until_told(job: Job) -> str:
    note(job, f"step slow {job.fence} {os.getpid()}")
    file = Path(os.environ["TEST_RECORD"]).with_name("go")
    while not file.exists():
        time.sleep(0.01)
    return "told"


async def until_told_later(job: Job) -> str:
    note(job, f"step slow {job.fence} {os.getpid()}")
    file = Path(os.environ["TEST_RECORD"]).with_name("go")
    while not file.exists():
        await asyncio.sleep(0.01)
    return "told"


def hold(job: Job) -> str:
    return job.step("slow", until_told, job)


async def hold_later(job: Job) -> str:
    told: str = await job.step("slow", until_told_later, job)
    return told


held = Workflow("held")
held_act = held.phase("act", backoff=QUICK, time_limit=60)(hold)
held_loop = Workflow("held-loop")
held_loop_act = held_loop.phase("act", backoff=QUICK, time_limit=60)(hold_later)


# Everything that goes together in an async phase.
gathered = Workflow("gathered")


@gathered.phase("act", backoff=QUICK)
async def gather(job: Job) -> Done:
    pages = await asyncio.gather(*(job.step(f"page {n}", later, job, f"page-{n}") for n in range(20)))
    twice = await asyncio.gather(*(job.step("once", later, job, "once") for _ in range(5)))
    blocked = await job.step("blocked", asyncio.to_thread, effect, job, "blocked")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(job.step("task", later, job, "task"))
    return Done(
        result={
            "pages": len(pages),
            "once": len({one["at"] for one in twice}),
            "blocked": blocked["name"],
            "task": task.result()["name"],
        }
    )


@gathered.phase("forgets", backoff=QUICK)
async def forgets(job: Job) -> None:
    if job.body.get("forget"):
        job.step("lost", later, job, "lost")  # type: ignore[unused-coroutine]


# For the figures of a step: nothing but steps, in threads and on the event loop. With default options.
quick_steps = Workflow("quick-steps")


@quick_steps.phase("act")
def many(job: Job) -> None:
    for n in range(STEPS):
        job.step(f"s{n}", int, n)


quick_steps_loop = Workflow("quick-steps-loop")


@quick_steps_loop.phase("act")
async def many_later(job: Job) -> None:
    for n in range(STEPS):
        await job.step(f"s{n}", asyncio.sleep, 0, n)
