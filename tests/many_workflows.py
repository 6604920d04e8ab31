"""Hundreds of workflows, and a middleware of the application's own that notes what Dramatiq calls.

For workers only: whoever imports it has them all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dramatiq.middleware import Middleware

from pipeline import Job, Workflow
from pipeline.worker.process import broker

HOOKS = ("consumer_thread_boot", "consumer_thread_shutdown", "process_message", "ack")


def work(job: Job) -> None:
    return None


for _number in range(int(os.environ["TEST_WORKFLOWS"])):
    _workflow = Workflow(f"many{_number:03d}")
    for _phase in ("one", "two", "three"):
        _workflow.phase(_phase)(work)


class Hooks(Middleware):
    """Notes each call with what it was about: the queue of a message or of a thread."""


def _noting(hook: str) -> Any:
    def note(self: Hooks, broker: Any, subject: Any, **_: Any) -> None:
        with Path(os.environ["TEST_HOOKS"]).open("a", encoding="utf-8") as notes:
            notes.write(f"{hook} {subject.queue_name}\n")

    return note


for _hook in HOOKS:
    for _moment in ("before", "after"):
        setattr(Hooks, f"{_moment}_{_hook}", _noting(f"{_moment}_{_hook}"))
broker().add_middleware(Hooks())
