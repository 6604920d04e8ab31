"""The life of a job as one table. PostgreSQL refuses every other step (the trigger ``pipeline.step``)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Status(StrEnum):
    """Where a job is. ``succeeded``, ``failed`` and ``cancelled`` are final."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYABLE = "retryable"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(StrEnum):
    """What may happen to a job. Each step is one SQL function of the same name."""

    CLAIM = "claim"
    TAKE_OVER = "take_over"
    HAND_OVER = "hand_over"
    CONTINUE = "continue"
    COMPLETE = "complete"
    RETRY = "retry"
    FAIL = "fail"
    SNOOZE = "snooze"
    RELEASE = "release"
    RECLAIM = "reclaim"
    CANCEL = "cancel"
    UNDELIVERABLE = "undeliverable"
    EXPIRE = "expire"
    REPLAY = "replay"
    DISCARD = "discard"


# How an attempt ended, as its history says.
Outcome = Literal[
    "succeeded",
    "retried",
    "exhausted",
    "failed",
    "snoozed",
    "released",
    "crashed",
    "stale",
    "poisoned",
    "cancelled",
    "undeliverable",
    "expired",
]

FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})

NEXT: dict[tuple[Status, Step], Status] = {
    (Status.PENDING, Step.CLAIM): Status.RUNNING,
    (Status.RETRYABLE, Step.CLAIM): Status.RUNNING,
    (Status.RUNNING, Step.TAKE_OVER): Status.RUNNING,
    (Status.RUNNING, Step.HAND_OVER): Status.PENDING,
    (Status.RUNNING, Step.CONTINUE): Status.RUNNING,
    (Status.RUNNING, Step.COMPLETE): Status.SUCCEEDED,
    (Status.RUNNING, Step.RETRY): Status.RETRYABLE,
    (Status.RUNNING, Step.FAIL): Status.FAILED,
    (Status.RUNNING, Step.SNOOZE): Status.PENDING,
    (Status.RUNNING, Step.RELEASE): Status.PENDING,
    (Status.RUNNING, Step.RECLAIM): Status.PENDING,
    (Status.PENDING, Step.CANCEL): Status.CANCELLED,
    (Status.RUNNING, Step.CANCEL): Status.CANCELLED,
    (Status.RETRYABLE, Step.CANCEL): Status.CANCELLED,
    (Status.PENDING, Step.UNDELIVERABLE): Status.FAILED,
    (Status.RETRYABLE, Step.UNDELIVERABLE): Status.FAILED,
    (Status.PENDING, Step.EXPIRE): Status.FAILED,
    (Status.FAILED, Step.REPLAY): Status.PENDING,
    (Status.CANCELLED, Step.REPLAY): Status.PENDING,
    (Status.FAILED, Step.DISCARD): Status.CANCELLED,
}


def allowed(status: Status, step: Step) -> bool:
    """Whether ``step`` may happen to a job in ``status``."""
    return (status, step) in NEXT
