"""A phase that lasts: workers are up, all their threads are busy, and what is submitted waits."""

from __future__ import annotations

from time import sleep

from pipeline import Job, Workflow

busy = Workflow("busy")


@busy.phase
def one(job: Job) -> None:
    sleep(600)
