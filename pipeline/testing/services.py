"""What a job reaches outside of its function, replaced by a test's own functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.declare.job import PLAIN
from pipeline.declare.services import Services

Rows = Sequence[Mapping[str, Any]]


class FakeServices(Services):
    """Bring what the phase uses; the rest is as without a worker: no database, and no rate limit.

    >>> job = Job({"order": 17}, services=FakeServices(read=lambda statement, values: [{"n": 1}]))
    >>> job.read("SELECT count(*) AS n FROM orders")
    [{'n': 1}]
    """

    def __init__(
        self,
        *,
        read: Callable[[str, Mapping[str, Any]], Rows] | None = None,
        keep: Callable[[str, Mapping[str, Any]], bool | Awaitable[bool]] | None = None,
        report: Callable[[int, int], bool] | None = None,
        take_permit: Callable[[str, int], None] | None = None,
        steps: Mapping[str, object] | None = None,
        temp_root: Path | None = None,
    ) -> None:
        own = {"read": read, "keep": keep, "report": report, "take_permit": take_permit, "temp_root": temp_root}
        # What earlier attempts kept; what steps of this job return is added to it, as JSON.
        self.steps.update((name, PLAIN.encode(value).decode()) for name, value in (steps or {}).items())
        self.__dict__.update({name: value for name, value in own.items() if value is not None})
