"""What the charts read: quarters of an hour add up their minutes, and every attempt counts for its own queue."""

from __future__ import annotations

from datetime import datetime

import httpx

from pipeline.journey.submit import submit_many
from tests.place import Place

LAST_MINUTE = """UPDATE pipeline.attempts SET finished_at = date_trunc('minute', now() - interval '10 s') - interval '1 s'
    RETURNING 1"""


def test_a_quarter_of_an_hour_has_the_highest_stand_and_the_sum_of_its_minutes(place: Place, api: httpx.Client) -> None:
    """Beyond six hours a chart reads these; the minute is counted twice here, as if it were two."""
    jobs = submit_many(None, "single", [{}] * 4)
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", jobs[0])
    place.rows(LAST_MINUTE)
    place.rows("SELECT pipeline.roll_up()")
    place.rows("SELECT pipeline.cancel(%s, 'x')", jobs[1])
    place.rows("UPDATE pipeline.rollups SET at = at - interval '1 minute' RETURNING 1")
    place.rows(LAST_MINUTE)
    assert place.rows("SELECT pipeline.roll_up() AS done") == [{"done": True}]
    [quarter] = api.get("/v1/stats/history", params={"queue": "single.act", "hours": 24}).json()
    assert (quarter["waiting"], quarter["dead"], quarter["failed"]) == (3, 1, 2)
    minutes = api.get("/v1/stats/history", params={"queue": "single.act", "hours": 1}).json()
    assert [minute["waiting"] for minute in minutes] == [3, 2]
    begun = [datetime.fromisoformat(minute["at"]) for minute in minutes]
    assert begun[0].tzinfo is not None and begun[0] < begun[1]


def test_attempts_count_for_their_own_queue_also_where_phases_have_the_same_name(place: Place) -> None:
    """Only then the job itself is looked at."""
    first = place.rows("SELECT workflow, phase, queue FROM pipeline.phases WHERE position = 1 AND workflow !~ '^match'")
    names = [row["phase"] for row in first]
    assert len(set(names)) < len(names) and any(names.count(name) == 1 for name in names)
    for row in first:
        job = place.rows("SELECT pipeline.submit(%s) AS id", row["workflow"])[0]["id"]
        place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", job)
    seen = place.rows("SELECT queue, n FROM pipeline.attempts_recent(60, 5000)")
    assert {row["queue"]: row["n"] for row in seen} == {row["queue"]: 1 for row in first}
