"""Statistics with a bounded cost: by index, and counted up to a limit."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from pipeline.front.api.stats_models import CAP, Phase, Stats
from pipeline.front.database import transaction
from pipeline.store.gateway import reading
from pipeline.store.gateway.reading import Recent

ENDED = frozenset(
    {"succeeded", "retried", "exhausted", "failed", "crashed", "stale", "poisoned", "undeliverable", "expired"}
)

FINAL = frozenset({"exhausted", "failed", "poisoned", "undeliverable", "expired"})


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
