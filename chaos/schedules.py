"""Schedules that go on through the faults: each moment gets one job."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from chaos.observer import Deadline, Observer, until
from chaos.reconcile import Scheduled
from chaos.subject import SCHEDULED, Subject
from chaos.work import insist
from pipeline import pause_schedule, schedule

# Moments every so many seconds. What a fault keeps from being on time is made up for.
EVERY, AS_LONG_AS_IT_TAKES = (1, 3), timedelta(hours=1)
BODY = {"n": 0, "seconds": {"first": 0.1}}
# When all servers are back, the moments that have come must have their jobs after so long.
MADE_UP_WITHIN = 60.0
# Of one transaction: how many moments there were, how many of them have a job, and how many jobs there are.
FOUND = """SELECT s.name, count(j.id)::integer AS jobs, count(DISTINCT m.at)::integer AS moments,
        (floor(extract(epoch FROM s.last_at) / extract(epoch FROM s.every))
         - floor(extract(epoch FROM s.created_at) / extract(epoch FROM s.every)))::integer AS due
    FROM pipeline.schedules s LEFT JOIN pipeline.jobs j ON j.tags @> ARRAY['schedule:' || s.name]
        LEFT JOIN LATERAL (SELECT pipeline.moment(j.id) AS at) m ON true
    WHERE s.workflow = %s AND s.name LIKE %s GROUP BY s.id ORDER BY s.id"""
LATE = """SELECT count(*) FROM pipeline.schedules s WHERE s.workflow = %s AND s.name LIKE %s
    AND (s.last_at IS NULL OR s.last_at + s.every <= %s)"""
JOBS = "SELECT j.id FROM pipeline.jobs j WHERE j.workflow = %s AND j.tags && %s::text[] ORDER BY j.id"


class Schedules:
    """Those of one wave. ``complaints``: what had no job although it was its time."""

    def __init__(self, subject: Subject, label: str, observer: Observer) -> None:
        # A workflow of a user's own has its own schedules.
        self._names = [f"{label}-every-{seconds}" for seconds in EVERY] if subject.has_ledger else []
        self._like = f"{label}-every-%"
        self._observer = observer
        self.complaints: list[str] = []

    def start(self) -> None:
        for name, seconds in zip(self._names, EVERY, strict=False):
            schedule(None, SCHEDULED, name, every=timedelta(seconds=seconds), body=BODY, catch_up=AS_LONG_AS_IT_TAKES)

    def stop(self) -> list[UUID]:
        """Wait for the jobs of all moments until now; then there are no more of them."""
        if not self._names:
            return []
        now: datetime = self._observer.one("SELECT now()")
        try:
            until(lambda: not self._observer.one(LATE, SCHEDULED, self._like, now), MADE_UP_WITHIN, "it")
        except Deadline:
            self.complaints.append(f"schedules had moments without jobs {MADE_UP_WITHIN:g} s after the fault")
        for name in self._names:
            insist(partial(pause_schedule, None, SCHEDULED, name))
        tags = [f"schedule:{name}" for name in self._names]
        jobs: list[UUID] = [row["id"] for row in self._observer.rows(JOBS, SCHEDULED, tags)]
        if not jobs:
            self.complaints.append("no schedule had a job in all that time")
        return jobs

    def found(self, observer: Observer) -> list[Scheduled]:
        """What the books compare."""
        if not self._names:
            return []
        return [Scheduled(**row) for row in observer.rows(FOUND, SCHEDULED, self._like)]
