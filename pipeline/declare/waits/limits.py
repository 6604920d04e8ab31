"""What a phase shares with others outside, by name: a rate that all workers keep, and a breaker. Plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipeline.declare.errors import BadInput

if TYPE_CHECKING:
    from pipeline.declare.job import Job
    from pipeline.declare.services import Guard

LONGEST_NAME = 200
FIELD = re.compile(r"\{([^{}]*)\}")
RATE = re.compile(r"(\d+(?:\.\d+)?) ?/ ?(s|min|h)")


def per_second(rate: str) -> float:
    """Of a text such as "20/s", "100/min" or "5/h"."""
    found = RATE.fullmatch(rate.strip())
    if found is None or not (number := float(found[1])):
        raise ValueError(f"{rate!r} is not a rate: write a number and a time, such as '20/s', '100/min' or '5/h'")
    return number / {"s": 1, "min": 60, "h": 3600}[found[2]]


@lru_cache(maxsize=1000)
def fields_of(template: str) -> tuple[str, ...]:
    """The fields of the body that are in a name, such as ``shop`` in ``shop:{shop}``. ValueError if it is none."""
    rest = FIELD.sub("", template)
    fields = tuple(FIELD.findall(template))
    if not 1 <= len(template) <= LONGEST_NAME or "{" in rest or "}" in rest or not all(fields) or not (rest or fields):
        raise ValueError(
            f"{template!r} is not the name of a limit: use up to {LONGEST_NAME} characters, such as 'wikidata', or "
            "with fields of the body 'shop:{shop}'"
        )
    return fields


@dataclass(frozen=True)
class Limit:
    """A rate limit by name: all phases and workers that use the name keep one rate and one pause together.

    ``name``: with fields of the body in braces, such as ``shop:{shop}``, each job has its own, and they have the rate
    each. ``rate``: such as ``"5/s"``; without one it only has pauses, and the rate that ``set_rate_limit`` gives it.
    ``burst``: how many calls may come at once after a quiet time (default: one second's worth).
    ``calls``: how many calls a job may make when its phase begins; with 0 the phase asks for each with ``job.limit``.

    >>> Limit("shop:{shop}", rate="30/min", burst=10).declared
    (0.5, 10)
    """

    name: str
    rate: str | None = None
    burst: float | None = None
    calls: int = 1

    def __post_init__(self) -> None:
        fields_of(self.name)
        if self.rate is not None:
            per_second(self.rate)
        if self.burst is not None and (self.rate is None or not self.burst >= 1):
            raise ValueError(f"limit {self.name}: burst is 1 or more, and goes with a rate")
        if isinstance(self.calls, bool) or not 0 <= self.calls <= 1000:
            raise ValueError(f"limit {self.name}: calls is a number from 0 to 1000, not {self.calls!r}")

    @property
    def declared(self) -> tuple[float, float] | None:
        """Calls a second and bucket, as the database has them."""
        if self.rate is None:
            return None
        rate = per_second(self.rate)
        return rate, max(rate if self.burst is None else self.burst, 1.0)


@dataclass(frozen=True)
class Breaker:
    """A circuit breaker by name, with its state in PostgreSQL: all workers see one.

    It opens after ``failures`` transient failures in a row, whoever's they are, and lets nobody through for ``pause``
    seconds. Then one job probes, for ``probe`` seconds at most: if it succeeds the breaker closes, otherwise it opens
    again. The failures that opened it, and those that find it open, cost their jobs nothing.

    >>> bazaar = Breaker("bazaar", failures=3, pause=60)
    >>> def look(job: Job) -> None:
    ...     with bazaar.calling(job):
    ...         httpx.get("https://bazaar.example/lamps", timeout=10).raise_for_status()
    """

    name: str
    failures: int = 5
    pause: float = 300.0
    probe: float = 60.0

    def __post_init__(self) -> None:
        fields_of(self.name)
        if isinstance(self.failures, bool) or self.failures < 1:
            raise ValueError(f"breaker {self.name}: failures is 1 or more, not {self.failures!r}")
        for option in ("pause", "probe"):
            if not 0 < getattr(self, option) <= 366 * 24 * 3600:
                raise ValueError(f"breaker {self.name}: {option} is above zero, not {getattr(self, option)!r}")

    def calling(self, job: Job[Any]) -> Guard:
        """Make one call inside this block of a phase: ``with``, and in an ``async def`` phase ``async with``.

        Open: raises Snooze before the block runs. Of the errors that leave the block, the transient ones count.
        """
        if fields_of(self.name):
            raise ValueError(f"breaker {self.name}: inside a phase give the name itself, without fields")
        return job.services.guard(self)


def read_shared(limit: Limit | str | None, breaker: Breaker | str | None) -> tuple[Limit | None, Breaker | None]:
    """As they are given to a phase."""
    limit = Limit(limit) if isinstance(limit, str) else limit
    breaker = Breaker(breaker) if isinstance(breaker, str) else breaker
    if limit is not None and breaker is not None and limit.name != breaker.name:
        raise ValueError(
            f"limit {limit.name!r} and breaker {breaker.name!r}: a phase has one name for both, so that the breaker "
            "holds its jobs at the limit"
        )
    return limit, breaker


def check_fields(template: str, schema: Mapping[str, Any] | None) -> None:
    """ValueError if bodies with this JSON Schema do not have all fields of the name."""
    if schema is None or (named := schema.get("properties")) is None or schema.get("additionalProperties") is True:
        return
    for field in fields_of(template):
        if field not in named:
            raise ValueError(
                f"the body has no field {field!r} for the limit {template!r}; its fields: {', '.join(sorted(named))}"
            )


def check_filled(template: str, encoded: str | bytes) -> None:
    """BadInput if this body, in JSON, does not fill the name (as pipeline.limit_name)."""
    if not (fields := fields_of(template)):
        return
    body = json.loads(encoded)
    for field in fields:
        value = body.get(field)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise BadInput(
                f"the body does not fill the limit {template!r}: {field} is a text or a whole number, "
                f"not {value!r:.100}"
            )
