"""What the statistics look like."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

CAP = 10_000


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
