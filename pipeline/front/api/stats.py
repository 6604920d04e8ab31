"""Statistics with a bounded cost: by index, and counted up to a limit."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from pipeline.front.api.database import transaction
from pipeline.front.api.stats_models import CAP, Phase, Stats

PHASES = text("SELECT * FROM pipeline.stats(:cap)")
RECENT = text("SELECT queue, outcome, n, seconds FROM pipeline.attempts_recent(60, 5000)")
REST = text("""SELECT now() AS at, pipeline.relay_lag() AS lag,
    (SELECT count(*) FROM (SELECT 1 FROM pipeline.batches WHERE completed_at IS NULL LIMIT :cap) b) AS batches""")
WORKERS = text("""SELECT pipeline.worker_state(w) AS state, count(*) AS n
    FROM pipeline.workers w WHERE stopped_at IS NULL GROUP BY 1""")
HISTORY = """SELECT coalesce(json_agg(h), '[]')::text FROM (
    SELECT at, queue, waiting, queued, running, dead, succeeded, retried, crashed, waited, failed, cancelled
    FROM {table}
    WHERE at > now() - make_interval(secs => :hours * 3600)
      AND (CAST(:workflow AS text) IS NULL OR split_part(queue, '.', 1) = :workflow)
      AND (CAST(:queue AS text) IS NULL OR queue = :queue)
    ORDER BY at, queue LIMIT 20000) h"""
MINUTES, QUARTERS = (text(HISTORY.format(table=table)) for table in ("pipeline.rollups", "pipeline.rollup_quarters"))
ENDED = frozenset({"succeeded", "retried", "exhausted", "failed", "crashed", "stale", "poisoned", "undeliverable"})


def compute() -> Stats:
    """The cluster now."""
    with transaction() as connection:
        rows = [dict(row) for row in connection.execute(PHASES, {"cap": CAP}).mappings()]
        recent = connection.execute(RECENT).all()
        rest = connection.execute(REST, {"cap": CAP}).one()
        workers = {row.state: row.n for row in connection.execute(WORKERS)}
    rates = _rates(recent)
    idle = {"ended_per_second": 0.0, "succeeded_per_second": 0.0, "error_rate": 0.0}
    phases = [Phase.model_validate({**row, **rates.get(row["queue"], idle)}) for row in rows]
    return Stats(at=rest.at, phases=phases, workers=workers, relay_lag_seconds=rest.lag, open_batches=rest.batches)


def history(connection: Connection, hours: float, workflow: str | None, queue: str | None) -> str:
    """Rollups as JSON, oldest first; beyond six hours a quarter of an hour is one row.

    PostgreSQL writes it: to take thousands of rows apart and put them together again would cost more than reading them.
    """
    values = {"hours": hours, "workflow": workflow, "queue": queue}
    statement = QUARTERS if hours > 6 else MINUTES
    return str(connection.execute(statement, values).scalar_one())


def _rates(recent: Any) -> dict[str, dict[str, float]]:
    """Waits and cancels are no attempts that ended: they neither count nor spoil the error rate."""
    found: dict[str, dict[str, float]] = {}
    for queue, outcome, n, seconds in recent:
        row = found.setdefault(queue, {"ended_per_second": 0.0, "succeeded_per_second": 0.0})
        if outcome in ENDED:
            row["ended_per_second"] += n / seconds
        if outcome == "succeeded":
            row["succeeded_per_second"] += n / seconds
    for row in found.values():
        ended = row["ended_per_second"]
        row["error_rate"] = min(max(1 - row["succeeded_per_second"] / ended, 0.0), 1.0) if ended else 0.0
    return found
