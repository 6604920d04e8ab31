"""A message that says whose it is when it is logged, and nothing of what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dramatiq.broker import MessageProxy


class Discreet(MessageProxy):
    """Dramatiq logs messages with their arguments, which are the envelope: the body is in it."""

    def __str__(self) -> str:
        return f"{self.actor_name} of job {_job_of(self.args)}"

    __repr__ = __str__
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _job_of(args: Sequence[Any]) -> str:
    """As far as it can be told."""
    match args:
        case [{"header": {"job_id": str(job)}}]:
            return job[:60]
        case _:
            return "unknown"
