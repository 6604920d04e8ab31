"""Why a job that nobody holds up does not run, and what to do about it: for the command line and the API."""

from __future__ import annotations

from typing import Any

# What a job waits for when it is a worker's turn, or the relay's.
ON_SOMEBODY = ("queued", "sending", "queue_full")


def advice(found: dict[str, Any]) -> str | None:
    """One sentence about a job as ``inspect.look`` found it. None: it waits for what it says, or runs."""
    hands = found["hands"]
    if hands is None or found["waits_for"] not in ON_SOMEBODY:
        return None
    if not hands["alive"]:
        return "no worker is alive: start some with dramatiq pipeline.actors --processes 4"
    if hands["refused"]:
        return "RabbitMQ has not confirmed its message: has it an alarm, of memory or disk? See pipeline doctor"
    if not hands["serving"]:
        return f"no worker consumes {hands['queue']}: is PIPELINE_WORKFLOWS set for them, with its module?"
    return None
