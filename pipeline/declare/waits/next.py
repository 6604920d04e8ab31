"""What comes after a phase, where that is not the next phase at once: a branch, an end, a wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, get_args
from uuid import UUID, uuid5

import orjson
from typing_extensions import TypeVar

from pipeline.declare.errors import LONGEST, Misuse

Policy = Literal["best_effort", "all", "any"]
Result_co = TypeVar("Result_co", covariant=True, default=Any)
LONGEST_EVENT = 200


@dataclass(frozen=True)
class Next:
    """``phase``: goes there. ``finish``: has ended. Otherwise what it waits for, before it continues: ``after``
    seconds; an ``event``, for ``after`` seconds at the longest; the children in ``batch``."""

    phase: str | None = None
    finish: bool = False
    after: float | None = None
    event: str | None = None
    batch: UUID | None = None

    @property
    def waits(self) -> bool:
        """Whether the next phase has to wait."""
        return self.phase is None and not self.finish

    def encode(self) -> str:
        """As pipeline.complete reads it."""
        return orjson.dumps({name: value for name, value in vars(self).items() if value not in (None, False)}).decode()


def decode_next(text: str | None) -> Next | None:
    """What ``encode`` wrote, in another process."""
    if text is None:
        return None
    told = orjson.loads(text)
    batch = told.pop("batch", None)
    return Next(**told, batch=None if batch is None else UUID(batch))


@dataclass(frozen=True)
class Children(Generic[Result_co]):
    """What ``job.spawn`` gives and the phase returns: jobs that begin when the phase ends, and that this job waits for.

    >>> Job({"order": 17}).spawn(complaints, [{"customer": 1}, {"customer": 2}]).bodies
    ['{"customer":1}', '{"customer":2}']

    ``bodies`` are JSON. The batch's id belongs to the attempt: another attempt has other children.
    """

    workflow: str
    bodies: Sequence[str]
    policy: Policy
    priority: int
    batch: UUID
    traceparent: str


def check_policy(policy: str) -> None:
    """Misuse if there is no such policy."""
    if policy not in get_args(Policy):
        raise Misuse(f"policy is 'best_effort', 'all' or 'any', not {policy!r}")


def seconds_of(what: str, time: timedelta) -> float:
    """Of a time to wait. Misuse if it cannot be meant."""
    if not isinstance(time, timedelta) or not 0 < time.total_seconds() <= LONGEST:
        raise Misuse(f"{what} is a timedelta above zero, of a year at the most, not {time!r}")
    return time.total_seconds()


def check_event(name: str) -> str:
    """The name of an event. Misuse if it cannot be one."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_EVENT or not name.isprintable():
        raise Misuse(f"an event's name is 1 to {LONGEST_EVENT} printable characters, not {name!r:.100}")
    return name


def batch_of(job: UUID, phase: str, fence: int) -> UUID:
    """The batch of an attempt's children."""
    return uuid5(job, f"{phase}:{fence}")
