"""Recovery of jobs whose worker is dead or silent. Nobody is called dead after one look."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from time import monotonic
from uuid import UUID

from pipeline.observe import failpoints, logs
from pipeline.observe.instruments import count
from pipeline.store.engine import Wire
from pipeline.store.gateway import recovery
from pipeline.store.gateway.recovery import Reclaimed, SilentJob

log = logs.get("pipeline.reclaim")

# A suspect whose rows somebody has locked stays one; it is not asked for without a pause.
SOONEST = 0.5


class Reclaimer:
    """Remembers when it first saw each suspect, and acts when it sees the same again, long enough after.

    A worker whose lock is free is dead at a second look ``patience`` seconds later: a living one that lost its
    connection has taken its lock again by then. A job whose heartbeat is older than its phase allows is stale if that
    same heartbeat was seen more than ``heartbeat`` seconds before. Make a new one for each connection: after an outage
    of PostgreSQL, or of the network between it and this process, everybody looks dead, and all is looked at anew.
    """

    def __init__(self, patience: float, heartbeat: float) -> None:
        self._patience = patience
        self._heartbeat = heartbeat
        self._first: dict[Hashable, float] = {}

    def look(self, connection: Wire) -> list[Reclaimed]:
        """Look once; reclaim what was suspect before and still is. Whoever is no suspect any more is forgotten."""
        missing = recovery.missing_workers(connection)
        silent = recovery.silent_jobs(connection, 2 * self._heartbeat)
        self._remember([*missing, *map(_heartbeat, silent)])
        dead = [no for no in missing if self._known(no) >= self._patience]
        stale = [job for job in silent if job.stale and self._known(_heartbeat(job)) >= self._wait(_heartbeat(job))]
        if not dead and not stale:
            return []
        found = recovery.reclaim(connection, dead, stale)
        if found and failpoints.armed:
            failpoints.reach("reclaim.committed")
        for one in found:
            count(f"reclaimed.{one.verdict}")
            log.warning("job reclaimed", job=str(one.job_id), queue=one.queue, worker=one.worker, verdict=one.verdict)
        return found

    def suspects(self) -> bool:
        """Whether somebody has been seen once and must be seen again."""
        return bool(self._first)

    def next_look(self) -> float:
        """Seconds until a second look can decide about somebody; infinity if nobody is suspect."""
        waits = (self._wait(suspect) - self._known(suspect) for suspect in self._first)
        return max(min(waits, default=float("inf")) + 0.05, SOONEST)

    def _wait(self, suspect: Hashable) -> float:
        # A heartbeat may come a little late.
        return self._patience if isinstance(suspect, int) else 1.5 * self._heartbeat

    def _known(self, suspect: Hashable) -> float:
        return monotonic() - self._first[suspect]

    def _remember(self, suspects: Iterable[Hashable]) -> None:
        now = monotonic()
        self._first = {suspect: self._first.get(suspect, now) for suspect in suspects}


def _heartbeat(job: SilentJob) -> tuple[UUID, int, datetime]:
    """That very heartbeat: with a new one the job is no suspect any more."""
    return job.job_id, job.fence, job.heartbeat_at
