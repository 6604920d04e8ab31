"""What faults ask of the work around them: jobs that are running just now, and whether the others go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from chaos.fault import Hits, Scene
from chaos.observer import until
from pipeline import submit_many

PATIENCE = 120.0
Answer = TypeVar("Answer")
PHASES = ("first", "second", "third")
# A phase's default.
POOL = 10
BEGUN = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND pipeline.claims(fence) >= %s"
UNFINISHED = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND completed_at IS NULL"
# The stream's own jobs take three seconds at most when nothing hinders them.
LATE = """SELECT count(*) FROM pipeline.jobs WHERE workflow = %s AND id <> ALL (%s) AND completed_at IS NULL
    AND created_at > %s AND created_at < now() - make_interval(secs => %s)"""
ENDED = """SELECT count(*) / extract(epoch FROM clock_timestamp() - %s)::float8 FROM pipeline.attempts
    WHERE outcome = 'succeeded' AND finished_at > %s"""


def insist(ask: Callable[[], Answer]) -> Answer:
    """Ask PostgreSQL until it answers: in a pair the other fault may have it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except (SQLAlchemyError, psycopg.Error):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def submit_own(scene: Scene, workflow: str, bodies: Sequence[dict[str, Any]], batch: UUID | None = None) -> list[UUID]:
    """Jobs of the fault's own, through every outage."""
    label = f"own-{scene.chance.getrandbits(64):x}"
    keys = [f"{label}:{n}" for n in range(len(bodies))]
    return insist(lambda: submit_many(None, workflow, bodies, keys=keys, batch=batch))


def long_jobs(scene: Scene, n: int, seconds: float) -> list[UUID]:
    """Jobs whose second phase takes so long, and has begun when this returns: there must be something to take.

    None if the workflow is somebody else's, whose phases cannot be told to take their time.
    """
    if not scene.stage.subject.has_ledger:
        return []
    body = {"seconds": {"first": 0.1, "second": seconds, "third": 0.1}}
    jobs = submit_own(scene, scene.stage.subject.workflow, [{"n": number, **body} for number in range(n)])
    until(lambda: scene.observer.one(BEGUN, jobs, 2) >= n, 60, "the long phases to begin")
    return jobs


def all_threads(scene: Scene, seconds: float) -> list[UUID]:
    """Jobs that fill the pools of all three phases for so long: more than there are threads, so that messages wait."""
    if not scene.stage.subject.has_ledger:
        return []
    times = [{phase: seconds if phase == long else 0.1 for phase in PHASES} for long in PHASES for _ in range(POOL)]
    bodies = [{"n": n, "seconds": one} for n, one in enumerate(times)]
    return submit_own(scene, scene.stage.subject.workflow, bodies)


def stuck_jobs(scene: Scene, workflow: str, seconds: float, each: int = 2) -> list[UUID]:
    """Jobs that block in every way there is; they have begun when this returns."""
    bodies = [
        {"n": n, "how": how, "stuck": seconds, "seconds": {"stuck": 0.1}}
        for n, how in enumerate(["sleep", "socket", "C"] * each)
    ]
    jobs = submit_own(scene, workflow, bodies)
    until(lambda: scene.observer.one(BEGUN, jobs, 1) >= len(jobs), 60, "the stuck phases to begin")
    return jobs


def pace(scene: Scene, since: datetime) -> float:
    """Phases that succeeded, a second."""
    return float(scene.observer.one(ENDED, since, since) or 0.0)


def check_others(scene: Scene, done: Hits, but: Sequence[UUID], since: datetime, seconds: float) -> None:
    """Complain if a job of the stream that came since then is not done after so long, though nobody holds it."""
    if not scene.alone:
        return
    late = scene.observer.one(LATE, scene.stage.subject.workflow, list(but), since, seconds)
    if late:
        done.complaints.append(f"{late} jobs that nobody holds were not done {seconds:g} s after their submit")
