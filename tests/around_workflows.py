"""Workflows whose managers raise, swallow and are interrupted. Loaded by the workers of tests/flow/test_around.py."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipeline import Backoff, Done, Job, Permanent, Transient, Workflow

QUICK = Backoff((0.05,), jitter=0.0)


def note(job: Job[Any], what: str) -> None:
    """A line of its own, also from a process that is killed afterwards."""
    handle = os.open(os.environ["TEST_RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{job.id} {job.fence} {what}\n".encode())
    os.close(handle)


@contextmanager
def noted(job: Job[Any]) -> Iterator[None]:
    note(job, "entered")
    try:
        yield
    except BaseException as error:
        note(job, f"left by {type(error).__name__}")
        raise
    note(job, "left")


@contextmanager
def troubled(job: Job[Any]) -> Iterator[None]:
    does = job.body["does"] if job.fence == 1 else None
    if does == "raises before":
        raise Transient("the manager cannot begin")
    try:
        yield
    except Permanent:
        if job.body["does"] != "swallows":
            raise
    if does == "raises after":
        raise Transient("the manager cannot end")


def act(job: Job) -> None:
    note(job, "worked")
    if job.body["does"] == "swallows":
        raise Permanent("nobody is to hide this")


def in_a_thread(job: Job) -> Done:
    act(job)
    for _ in range(600 if job.body["does"] == "takes long" else 0):
        time.sleep(0.1)
    return Done("done", write=[])


async def on_the_loop(job: Job) -> str:
    act(job)
    await asyncio.sleep(60 if job.body["does"] == "takes long" else 0)
    return "done"


KINDS: dict[str, Workflow[dict[str, Any], Any]] = {}
for kind, work, isolated in (
    ("thread", in_a_thread, False),
    ("loop", on_the_loop, False),
    ("child", in_a_thread, True),
    ("loop-in-child", on_the_loop, True),
):
    phase: Callable[..., Any] = work
    KINDS[kind] = workflow = Workflow(f"around-{kind}")
    workflow.around(noted)
    workflow.around(troubled)
    workflow.phase("act", backoff=QUICK, max_attempts=2, isolated=isolated)(phase)
