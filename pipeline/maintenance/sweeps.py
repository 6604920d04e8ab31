"""The backstops: what redelivery, NOTIFY and confirms did not catch is found here and sent on its way again."""

from __future__ import annotations

import threading
from datetime import datetime

import psycopg
from psycopg.rows import TupleRow

from pipeline.observe import logs

log = logs.get("pipeline.sweeps")
# Set when this process is told to stop: a sweep that waits need not wait any longer.
stopping = threading.Event()

Connection = psycopg.Connection[TupleRow]

# Counted up to ten thousand a phase: a report must not read a million waiting rows.
DEPTHS = """
    SELECT ph.queue,
           (SELECT count(*) FROM (SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = ph.id
                AND o.sent_at IS NOT NULL
                AND (SELECT j.status FROM pipeline.jobs j WHERE j.id = o.job_id) <> 'running' LIMIT 10000) s) AS queued,
           (SELECT count(*) FROM (SELECT 1 FROM pipeline.outbox o WHERE o.phase_id = ph.id AND o.sent_at IS NULL
                                  AND o.due_at IS NULL LIMIT 10000) w) AS waiting
    FROM pipeline.phases ph ORDER BY ph.id"""
# What ended since the last report: by the index of ends, and no more than ten thousand attempts. The last second is
# left for the next one: what ended then may not have committed yet.
UNTIL = "SELECT now() - interval '1 second', now() - interval '1 second' - make_interval(secs => %s)"
ENDED = """
    SELECT j.workflow || '.' || a.phase, count(*) FILTER (WHERE a.outcome = 'succeeded'),
           count(*) FILTER (WHERE a.outcome IN ('failed', 'exhausted', 'poisoned', 'undeliverable')),
           count(*) FILTER (WHERE a.outcome = 'retried'), count(*) FILTER (WHERE a.outcome IN ('crashed', 'stale')),
           avg(extract(epoch FROM a.finished_at - a.started_at)) FILTER (WHERE a.outcome = 'succeeded')
    FROM (SELECT * FROM pipeline.attempts WHERE finished_at > %s AND finished_at <= %s
          ORDER BY finished_at DESC LIMIT 10000) a JOIN pipeline.jobs j ON j.id = a.job_id GROUP BY 1 ORDER BY 1"""
PRUNE = "SELECT pipeline.prune(make_interval(secs => %s), %s, make_interval(secs => %s))"
POOLS = "SELECT phase, state, count(*) FROM pipeline.processors WHERE state <> 'idle' GROUP BY phase, state"


def prune(connection: Connection, keep_days: float, keep_failed_days: float | None, batch: int = 1000) -> int:
    """Delete finished jobs and their history, in small batches, oldest first. Failed jobs only where a time is set."""
    total = 0
    failed = keep_failed_days and keep_failed_days * 86400
    while True:
        row = connection.execute(PRUNE, (keep_days * 86400, batch, failed)).fetchone()
        deleted = row[0] if row else 0
        total += deleted
        if deleted < batch:
            return total


class Report:
    """Queue statistics, pool states and what ended since the last time, in the log.

    A report that looked back for as long as it is meant to wait would miss what ended while it was late.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._since: datetime | None = None

    def say(self, connection: Connection) -> bool:
        """False if nothing waits anywhere: an idle system asks no further."""
        self._say_ended(connection)
        busy = [row for row in connection.execute(DEPTHS).fetchall() if row[1] or row[2]]
        if not busy:
            return False
        for queue, queued, waiting in busy:
            log.info("queue", queue=queue, queued=queued, waiting=waiting)
        for phase, state, n in connection.execute(POOLS).fetchall():
            log.info("pool", phase=phase, state=state, processors=n)
        return True

    def _say_ended(self, connection: Connection) -> None:
        row = connection.execute(UNTIL, (self._every,)).fetchone()
        assert row is not None
        until, first = row
        since, self._since = self._since or first, until
        for queue, succeeded, failed, retried, crashed, mean in connection.execute(ENDED, (since, until)).fetchall():
            log.info(
                "phase",
                queue=queue,
                succeeded=succeeded,
                failed=failed,
                retried=retried,
                crashed=crashed,
                success_rate=round(succeeded / max(succeeded + failed, 1), 3),
                mean_seconds=None if mean is None else round(float(mean), 3),
            )
