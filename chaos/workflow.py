"""The workflows that the faults hit: each phase leaves one row in the ledger, or the engine erred."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from actors.scrape.cache import Cache
from chaos.block import BLOCK
from chaos.subject import CHILDREN, ENDING, KEYED, PER_KEY, SCHEDULED, WAITING, WORD, fate
from pipeline import Children, Done, Ends, Job, Permanent, Workflow, cancel, settings

LEDGER = """CREATE TABLE IF NOT EXISTS chaos_ledger (
    id bigserial PRIMARY KEY, job_id uuid NOT NULL, phase text NOT NULL, fence bigint NOT NULL)"""
WRITE = text("INSERT INTO chaos_ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)")
SCRATCH = b"x" * 16384
STUCK_LIMIT = 3.0
chaos = Workflow("chaos")


def cache() -> Cache:
    """In a folder of its own, so that its disk alone can be full."""
    return Cache(settings.get().temp_folder.parent / "cache", ttl=600, max_bytes=1 << 20)


def work(job: Job) -> Done:
    """Outside work first (a while, a file in the temp folder, the cache), the database effect last."""
    begin(job)
    time.sleep(float(job.body["seconds"][job.phase]))
    return end(job)


async def wait(job: Job) -> Done:
    """The same on the event loop."""
    await asyncio.to_thread(begin, job)
    await asyncio.sleep(float(job.body["seconds"][job.phase]))
    return await asyncio.to_thread(end, job)


def begin(job: Job) -> None:
    """Leave something in the temp folder and in the cache."""
    (job.tmp / "scratch").write_bytes(SCRATCH)
    if job.phase == "second":
        cache().set(str(job.body["n"]), "x" * 1000)


def end(job: Job) -> Done:
    """A row in the ledger, if the temp folder is as it was."""
    if not (job.tmp / "scratch").exists():
        raise RuntimeError("somebody removed the temp folder of a running job")

    def write(connection: Connection) -> None:
        connection.execute(WRITE, {"job": job.id, "phase": job.phase, "fence": job.fence})

    return Done(result={"fence": job.fence}, write=write)


def stick_or_work(job: Job) -> Done:
    """At its first attempt it blocks where no exception reaches it; the next one works."""
    if job.fence == 1:
        BLOCK[job.body["how"]](float(job.body["stuck"]))
    return work(job)


# Nothing but the faults' own bodies: options are the defaults, as users have them.
first = chaos.phase("first")(work)
second = chaos.phase("second")(work)
third = chaos.phase("third")(work)

# The same in the other two ways to run a phase; the stream of jobs has all three (see chaos.subject).
on_loop, in_children = Workflow("chaos-async"), Workflow("chaos-isolated")
# And of customers who take turns.
keyed = Workflow(KEYED, key="customer", per_key=PER_KEY)
for name in ("first", "second", "third"):
    keyed.phase(name)(work)
    on_loop.phase(name)(wait)
    in_children.phase(name, isolated=True)(work)

scheduled = Workflow(SCHEDULED)
scheduled.phase("first")(work)

# Steps, in all three ways: what each did outside stands in a file, in which nothing is ever taken back.
STEPS = ("look", "decide", "act")


def steps_file() -> Path:
    """One line a call."""
    return settings.get().temp_folder.parent / "steps"


def note(job: Job, name: str) -> str:
    """What a step does outside."""
    handle = os.open(steps_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, f"{job.id} {job.phase} {name} {job.fence}\n".encode())
    finally:
        os.close(handle)
    return f"{name} under {job.fence}"


async def note_later(job: Job, name: str) -> str:
    """The same in an async phase."""
    await asyncio.sleep(0)
    return note(job, name)


def work_in_steps(job: Job) -> Done:
    """A third of the time between two steps."""
    begin(job)
    for name in STEPS:
        job.step(name, note, job, name)
        time.sleep(float(job.body["seconds"][job.phase]) / len(STEPS))
    return end(job)


async def wait_in_steps(job: Job) -> Done:
    """The same on the event loop."""
    await asyncio.to_thread(begin, job)
    for name in STEPS:
        await job.step(name, note_later, job, name)
        await asyncio.sleep(float(job.body["seconds"][job.phase]) / len(STEPS))
    return await asyncio.to_thread(end, job)


stepped = Workflow("chaos-steps")
stepped.phase("first")(work_in_steps)
stepped.phase("second")(wait_in_steps)
stepped.phase("third", isolated=True)(work_in_steps)

# A job that waits for its children, for somebody's word, or for the end of that wait, and for time.
PATIENCE, NAP = timedelta(seconds=2), timedelta(seconds=0.2)
OUT_OF_TIME = "nobody said a word"
child, waiting = Workflow("chaos-child"), Workflow(WAITING)


@child.phase("first")
def be_a_child(job: Job) -> Done:
    """Its result is its number."""
    return replace(work(job), result=job.body["n"])


@waiting.phase
async def spawn(job: Job) -> Children[int]:
    """The only phase that writes nothing: it ends with the children."""
    seconds = job.body["seconds"]
    return job.spawn(child, [{"n": n, "seconds": seconds} for n in range(CHILDREN)])


@waiting.phase
def ask(job: Job, spawn: Ends[int]) -> Done:
    """After all children have ended, in their order, it waits for a word (chaos.words)."""
    if [end.result for end in spawn] != list(range(CHILDREN)):
        raise RuntimeError(f"these are not the ends of all children: {list(spawn)}")
    begin(job)
    asked: Any = job.wait_for(WORD, timeout=PATIENCE, default=OUT_OF_TIME)
    return replace(asked, write=end(job).write)


@waiting.phase
async def rest(job: Job) -> Done:
    """It sleeps once, whatever happens to its attempts."""
    await job.sleep("nap", NAP)
    await asyncio.to_thread(begin, job)
    return await asyncio.to_thread(end, job)


# Jobs that end in every way; for each end a hook, whose job is in the books like any other.
told, ending = Workflow("chaos-told"), Workflow(ENDING)


@told.phase("first")
def hear(job: Job) -> Done:
    """A row in the ledger."""
    begin(job)
    return end(job)


@ending.phase("first")
def meet_its_fate(job: Job) -> Done:
    """It succeeds, fails, or cancels itself, by its number."""
    done = work(job)
    if fate(job.body["n"]) == "failed":
        raise Permanent("it was meant to")
    if fate(job.body["n"]) == "cancelled":
        cancel(None, job.id, "it was meant to be")
    return done


# Of a thread, of child processes, and of jobs that waited.
for hooked in (ending, in_children, waiting):
    hooked.on_success(told)
ending.on_failure(told)
ending.on_cancel(told)

# Two phases that get stuck: one with a time limit that is soon over, one with the default's.
limited = Workflow("chaos-limited").phase("stuck", time_limit=STUCK_LIMIT)(stick_or_work)
endless = Workflow("chaos-endless").phase("stuck")(stick_or_work)
