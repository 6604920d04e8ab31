"""What a phase is allowed to use: its budgets, its pool and its limits, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from pipeline.declare.backoff import Backoff
from pipeline.declare.waits.limits import Breaker, Limit, per_second

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
BODY_LIMIT = 64 * 1024
# Half of what RabbitMQ takes (the policy in rabbitmq/definitions.json): copies of lost messages may add to it.
HIGHEST_QUEUE_LIMIT = 5000

Kind = Literal["thread", "async", "isolated"]


@dataclass(frozen=True)
class Throttle:
    """At most ``count`` jobs are sent every ``seconds``.

    >>> @complaints.phase(throttle=Throttle(count=100, seconds=60))
    ... def mail(job: Job) -> None: ...
    """

    count: int
    seconds: float

    def __post_init__(self) -> None:
        if self.count < 1 or not self.seconds > 0:
            raise ValueError(f"a throttle sends at least one job in more than zero seconds, not {self}")


# What is sent at once under a high rate: the gate need not look more often than that.
SLOTS = 20


def read_rate(rate: str | None) -> Throttle | None:
    """A throttle, of a text such as "20/s", "100/min" or "5/h"."""
    if rate is None:
        return None
    number = per_second(rate)
    count = max(1, int(number / SLOTS))
    return Throttle(count, count / number)


@dataclass(frozen=True)
class PhaseSpec:
    """One step of a workflow. Times are in seconds, sizes in bytes.

    ``shared_limit``: all jobs of the phase call the same outside system, so that one Retry-After of it pauses
    the phase for every worker. ``max_jobs``: a child process of an isolated phase is replaced after so many.
    ``start_first``: an earlier phase goes before this one (the workflow's order).
    """

    workflow: str
    name: str
    pool: int | None = None
    queue_limit: int = 1000
    max_attempts: int = 3
    max_crashes: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    time_limit: float = 600.0
    stale_after: float | None = None
    isolated: bool = False
    memory_limit: int | None = None
    max_jobs: int = 1000
    throttle: Throttle | None = None
    shared_limit: bool = False
    start_first: bool = False
    limit: Limit | None = None
    breaker: Breaker | None = None
    # Its function is a coroutine function.
    asynchronous: bool = False
    # The RabbitMQ queue of the phase, and the Dramatiq actor's name: global to a broker, so it carries the workflow.
    queue: str = field(init=False)
    actor: str = field(init=False)
    # The name of what its jobs share outside, or its template: the limit's, which is the breaker's as well.
    rate_limit: str | None = field(init=False)

    @property
    def kind(self) -> Kind:
        """What it needs to run: each kind has places of its own."""
        if self.isolated:
            return "isolated"
        return "async" if self.asynchronous else "thread"

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue", f"{self.workflow}.{self.name}")
        object.__setattr__(self, "actor", f"{self.workflow}.{self.name.replace('-', '_')}")
        shared = self.limit or self.breaker
        object.__setattr__(self, "rate_limit", None if shared is None else shared.name)
        for what, name in (("workflow", self.workflow), ("phase", self.name)):
            if not NAME.fullmatch(name) or len(name) > 60:
                raise ValueError(
                    f"{what} name {name!r}: use lower-case words joined by '-', like 'check-stock', "
                    "of at most 60 characters"
                )
        if self.pool is not None and self.pool < 1:
            raise ValueError(f"phase {self.name}: a pool has at least one processor; use pool=None for no limit")
        if min(self.queue_limit, self.max_attempts, self.max_crashes, self.max_jobs) < 1:
            raise ValueError(f"phase {self.name}: queue_limit, max_attempts, max_crashes and max_jobs are at least 1")
        if self.queue_limit > HIGHEST_QUEUE_LIMIT:
            raise ValueError(
                f"phase {self.name}: queue_limit is at most {HIGHEST_QUEUE_LIMIT}, not {self.queue_limit}: what waits "
                "beyond it waits in PostgreSQL, at no cost"
            )
        for name in ("time_limit", "stale_after", "memory_limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"phase {self.name}: {name} is above zero, not {value}")


SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(i?)B", re.IGNORECASE)


def read_size(size: int | str | None) -> int | None:
    """Bytes, of a number or of a text such as "512 MiB" or "2 GB"."""
    if not isinstance(size, str):
        return size
    found = SIZE.fullmatch(size.strip())
    if found is None:
        raise ValueError(f"{size!r} is not a size: write a number of bytes, or a text such as '512 MiB'")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " "))


def idempotency_key(job_id: object, phase: str) -> str:
    """The same for every attempt of a phase of a job, so that an outside system can recognise a repeat."""
    return f"{job_id}:{phase}"
