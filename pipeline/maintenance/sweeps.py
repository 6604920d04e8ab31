"""The backstops: what redelivery, NOTIFY and confirms did not catch is found here and sent on its way again."""

from __future__ import annotations

import threading
from datetime import datetime

from pipeline.observe import logs
from pipeline.store.engine import Wire
from pipeline.store.gateway import upkeep

log = logs.get("pipeline.sweeps")
# Set when this process is told to stop: a sweep that waits need not wait any longer.
stopping = threading.Event()


def prune(connection: Wire, keep_days: float, keep_failed_days: float | None, batch: int = 1000) -> int:
    """Delete finished jobs and their history, in small batches, oldest first. Failed jobs only where a time is set."""
    total = 0
    failed = keep_failed_days and keep_failed_days * 86400
    while True:
        deleted = upkeep.prune(connection, keep_days * 86400, batch, failed)
        total += deleted
        if deleted < batch:
            return total


def prune_audit(connection: Wire, keep_days: float, batch: int = 1000) -> None:
    """Forget who did what before that, in small batches."""
    while upkeep.prune_audit(connection, keep_days * 86400, batch) == batch:
        pass


class Report:
    """Queue statistics, pool states and what ended since the last time, in the log.

    A report that looked back for as long as it is meant to wait would miss what ended while it was late.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._since: datetime | None = None

    def say(self, connection: Wire) -> bool:
        """False if nothing waits anywhere: an idle system asks no further."""
        self._say_ended(connection)
        busy = [depth for depth in upkeep.depths(connection) if depth.queued or depth.waiting]
        if not busy:
            return False
        for queue, queued, waiting in busy:
            log.info("queue", queue=queue, queued=queued, waiting=waiting)
        for phase, state, processors in upkeep.pools(connection):
            log.info("pool", phase=phase, state=state, processors=processors)
        return True

    def _say_ended(self, connection: Wire) -> None:
        until, first = upkeep.window(connection, self._every)
        since, self._since = self._since or first, until
        for queue, succeeded, failed, retried, crashed, mean in upkeep.ended(connection, since, until):
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
