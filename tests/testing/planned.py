"""A workflow whose jobs bring their own fate: what the first attempt does, the second, and so on, in whatever phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline import Backoff, Done, Job, Permanent, Snooze, Transient, Workflow, cancel

planned = Workflow("planned")


def raises(error: Exception) -> Callable[[Job], object]:
    def act(job: Job) -> object:
        raise error

    return act


def cancels_itself(job: Job) -> object:
    cancel(None, job.id, "by its own phase")
    return {"too": "late"}


ACTIONS: dict[str, Callable[[Job], object]] = {
    "ok": lambda job: {"fence": job.fence},
    "nothing": lambda job: None,
    "retry": raises(Transient("later")),
    "unknown": raises(ValueError("who knows")),
    "fail": raises(Permanent("never")),
    "snooze": raises(Snooze(600, "breaker")),
    "asked": raises(Snooze(2, "retry_after", asked=True)),
    "not_json": lambda job: {"n": float("nan")},
    "too_big": lambda job: "x" * 70_000,
    "cancel": cancels_itself,
}


def act(job: Job) -> object:
    plan: list[str] = job.body["plan"]
    return ACTIONS[plan[job.fence - 1] if job.fence <= len(plan) else "ok"](job)


@planned.phase
def one(job: Job) -> object:
    return act(job)


@planned.phase(max_attempts=2, max_crashes=2, backoff=Backoff((60.0,)))
async def two(job: Job) -> object:
    await job.progress(1, 2)
    return act(job)


@planned.phase
def three(job: Job, one: Any = None) -> Done:
    """What it returns beside, so that results by name are part of it."""
    return Done({"one": one, "did": act(job)})
