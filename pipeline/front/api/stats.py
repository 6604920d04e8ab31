"""Statistics with a bounded cost: by index, and counted up to a limit."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pydantic import BaseModel, Field
from sqlalchemy import Connection

from pipeline.front.database import transaction
from pipeline.store.gateway import reading
from pipeline.store.gateway.reading import Recent

CAP = 10_000
ENDED = frozenset(
    {"succeeded", "retried", "exhausted", "failed", "crashed", "stale", "poisoned", "undeliverable", "expired"}
)

FINAL = frozenset({"exhausted", "failed", "poisoned", "undeliverable", "expired"})


class Phase(BaseModel):
    """One phase now. Counts stop at 10,000: that number means "at least so many"."""

    queue: str
    workflow: str
    phase: str
    waiting: dict[str, int] = Field(description="not sent yet, by reason: paused, queue_full, pool_full, sending, …")
    queued: int = Field(description="messages in the broker")
    running: int
    retryable: int
    failed: int
    pool: int | None = Field(description="processors; null = no limit")
    busy: int
    error: int = Field(description="processors whose worker gives no sign of life")
    paused: bool
    paused_until: datetime | None = Field(description="null while paused = until somebody resumes it")
    throttle_count: int | None = Field(description="at most so many are sent")
    throttle_seconds: float | None = Field(description="in so many seconds")
    pool_is_set: bool = Field(description="the pool is an operator's, in place of declared_pool")
    declared_pool: int | None
    rate_is_set: bool = Field(description="the rate is an operator's, in place of the declared one")
    declared_throttle_count: int | None
    declared_throttle_seconds: float | None
    oldest_seconds: float | None = Field(description="age of the oldest job that waits for a thread")
    ended_per_second: float = Field(description="attempts that ended, over the last minute")
    succeeded_per_second: float
    failed_per_second: float = Field(description="attempts that ended their job as failed, over the last minute")
    error_rate: float = Field(description="share of ended attempts that retried, crashed or failed; 0 … 1")


class Stats(BaseModel):
    """The whole cluster now."""

    at: datetime
    phases: list[Phase]
    workers: dict[str, int] = Field(description="worker processes by state")
    relay_lag_seconds: float
    open_batches: int


class Rollup(BaseModel):
    """One phase in one minute: what stood at its end, and the attempts that ended in it."""

    at: datetime
    queue: str
    waiting: int
    queued: int
    running: int
    dead: int
    succeeded: int
    retried: int
    crashed: int
    waited: int
    failed: int
    cancelled: int


def compute() -> Stats:
    """The cluster now."""
    with transaction() as connection:
        found = reading.phases(connection, CAP)
        recent = reading.recent_attempts(connection)
        moment = reading.moment(connection, CAP)
        workers = reading.worker_states(connection)
    rates = _rates(recent)
    idle = {"ended_per_second": 0.0, "succeeded_per_second": 0.0, "failed_per_second": 0.0, "error_rate": 0.0}
    phases = [Phase.model_validate({**phase._asdict(), **rates.get(phase.queue, idle)}) for phase in found]
    return Stats(
        at=moment.at,
        phases=phases,
        workers=workers,
        relay_lag_seconds=moment.relay_lag,
        open_batches=moment.open_batches,
    )


def history(connection: Connection, hours: float, workflow: str | None, queue: str | None) -> str:
    """Rollups as JSON, oldest first; beyond six hours a quarter of an hour is one row."""
    return reading.history(connection, hours, workflow, queue, quarters=hours > 6)


def _rates(recent: Iterable[Recent]) -> dict[str, dict[str, float]]:
    """Waits and cancels are no attempts that ended: they neither count nor spoil the error rate."""
    found: dict[str, dict[str, float]] = {}
    for queue, outcome, n, seconds in recent:
        row = found.setdefault(queue, {"ended_per_second": 0.0, "succeeded_per_second": 0.0, "failed_per_second": 0.0})
        if outcome in ENDED:
            row["ended_per_second"] += n / seconds
        if outcome == "succeeded":
            row["succeeded_per_second"] += n / seconds
        if outcome in FINAL:
            row["failed_per_second"] += n / seconds
    for row in found.values():
        ended = row["ended_per_second"]
        row["error_rate"] = min(max(1 - row["succeeded_per_second"] / ended, 0.0), 1.0) if ended else 0.0
    return found
