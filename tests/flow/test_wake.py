"""A relay that was woken for nothing and falls asleep again misses nobody who took it for awake."""

from __future__ import annotations

import psycopg

from pipeline import submit
from tests.place import Place

ASLEEP = "SELECT count(*) FROM pipeline.relay_asleep WHERE last_value = 1"


def test_whoever_took_a_relay_for_awake_that_was_woken_for_nothing_is_found(place: Place) -> None:
    """The submit finds the relay awake, and commits when it sleeps; the next look would be half a minute away."""
    place.worker(threads=1)
    place.finished(submit(None, "single"))
    place.until(lambda: place.count(ASLEEP), 20, "the relay to sleep")
    with psycopg.connect(place.database_url) as late:
        # As the relay says it when it wakes; from here on it is said to sleep only if it looked, and fell asleep again.
        place.db.execute("SELECT setval('pipeline.relay_asleep', 2)")
        found = late.execute("SELECT pipeline.submit('single')").fetchone()
        place.db.execute("SELECT pg_notify('pipeline_relay', '')")
        place.until(lambda: place.count(ASLEEP), 20, "the relay to sleep again")
        late.commit()
    assert found is not None
    assert place.finished(found[0], timeout=10)[0]["status"] == "succeeded"
