"""Somebody waits for a job, and the test ends it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from psycopg.types.json import Jsonb

from pipeline import job
from tests.db.steps import Hold
from tests.place import Place

AWAITED = "SELECT count(*) FROM pipeline.outbox WHERE awaited"
LISTENER = """SELECT pid, state, query_start, backend_xmin FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'pipeline result'"""


def finish(place: Place, hold: Hold, result: object = None) -> None:
    values = (1, [hold.job], [hold.fence], [None if result is None else Jsonb(result)], [None])
    place.db.execute("SELECT pipeline.complete(%s, %s::uuid[], %s::bigint[], %s::jsonb[], %s::text[])", values)


def awaited(place: Place, jobs: int = 1) -> None:
    place.until(lambda: place.count(AWAITED) == jobs, 20, f"{jobs} jobs to be waited for")


def in_a_thread(job_id: UUID, timeout: float = 30) -> Callable[[], object]:
    """Waits for the result; call what is returned to get it, or its error."""
    threads = ThreadPoolExecutor(1)
    waiting = threads.submit(job(job_id).result, timeout)
    threads.shutdown(wait=False)
    return waiting.result
