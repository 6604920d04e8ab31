"""A relay that was woken for nothing and falls asleep again misses nobody who took it for awake."""

from __future__ import annotations

import time
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow

from pipeline import submit
from tests.place import Place

ASLEEP = "SELECT last_value = 1 FROM pipeline.relay_asleep"
COUNT = "SELECT count(*) FROM pipeline.relay_asleep WHERE last_value = 1"
TRIES = 300


def test_whoever_took_a_relay_for_awake_that_was_woken_for_nothing_is_found(place: Place) -> None:
    """The submit finds the relay awake, and commits when it sleeps; the next look would be half a minute away."""
    place.worker(threads=1)
    place.finished(submit(None, "single"))
    found = next(job for _ in range(TRIES) if (job := _submitted_while_awake(place)))
    assert place.finished(found, timeout=10)[0]["status"] == "succeeded"


def _submitted_while_awake(place: Place) -> UUID | None:
    """Committed while it sleeps; None, and nothing, if it slept when the submit looked."""
    place.until(lambda: place.count(COUNT), 20, "the relay to sleep")
    with psycopg.connect(place.database_url) as late:
        late.execute(ASLEEP)
        place.db.execute("SELECT pg_notify('pipeline_relay', '')")
        before = _until_awake(late)
        submitted = late.execute("SELECT pipeline.submit('single')").fetchone()
        # Awake before and after the submit, and woken once: the submit has seen it awake, too, and wakes nobody.
        if not (before and late.execute(ASLEEP).fetchone() == (False,)):
            late.rollback()
            return None
        place.until(lambda: _sleeps(place), 20, "the relay to sleep, and nobody to wake it")
        late.commit()
    return submitted[0] if submitted else None


def _until_awake(connection: psycopg.Connection[TupleRow]) -> bool:
    return any(connection.execute(ASLEEP).fetchone() == (False,) for _ in range(50))


def _sleeps(place: Place) -> bool:
    """At twenty looks in a row: every notification has been heard."""
    for _ in range(20):
        if not place.count(COUNT):
            return False
        time.sleep(0.02)
    return True
