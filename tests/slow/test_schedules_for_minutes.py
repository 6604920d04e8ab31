"""1,000 schedules a minute for ten minutes, the leading process killed every thirty seconds, and one clock wrong."""

from __future__ import annotations

import os
import time

import pytest

from tests.leaders import another_clock, kill_leader, leader, stand_by
from tests.place import Place

SCHEDULES = 1000
MINUTES = int(os.environ.get("TEST_MINUTES", "10"))
KILL_EVERY = 30.0
ADD = """SELECT pipeline.schedule('single', 's' || n, '* * * * *', p_timezone => CASE mod(n, 2) WHEN 0 THEN 'Europe/Paris' END)
    FROM generate_series(1, %s) AS n"""
PLANNED = "SELECT count(*) FROM pipeline.schedules WHERE planned"
# They were made in one transaction.
FIRST = "SELECT date_trunc('minute', min(created_at)) + interval '1 minute' AS at FROM pipeline.schedules"
EACH = """SELECT m.at, count(*) AS jobs, count(DISTINCT j.tags[1]) AS schedules,
        extract(epoch FROM max(j.created_at) - m.at)::float8 AS last
    FROM pipeline.jobs j CROSS JOIN LATERAL (SELECT pipeline.moment(j.id) AS at) m GROUP BY 1 ORDER BY 1"""
UNFINISHED = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"


@pytest.mark.slow
@pytest.mark.timeout(MINUTES * 60 + 600)
def test_each_moments_job_exactly_once(place: Place) -> None:
    """The jobs run as well, so that one that was submitted twice would also be done twice."""
    before = another_clock()
    assert before, "faketime is needed for the wrong clock: script/setup --chaos installs it"
    place.db.execute(ADD, (SCHEDULES,))
    stand_by(place, *before)
    worker = place.worker(threads=8)
    stand_by(place)
    place.until(lambda: place.count(PLANNED) == SCHEDULES, 60, "the first moments to be worked out")
    [first] = place.rows(FIRST)
    kills, ends = 0, time.monotonic() + MINUTES * 60
    while (left := ends - time.monotonic()) > 0:
        # The clock of the test: what is awaited is time itself.
        time.sleep(min(KILL_EVERY, left))
        stand_by(place, *(before if kills % 4 == 1 else ()))
        kill_leader(place)
        kills += 1
        if worker.poll() is not None:
            worker = place.worker(threads=8)
    [now] = place.rows("SELECT now()")
    last = "SELECT count(*) FROM pipeline.schedules WHERE last_at >= date_trunc('minute', %s::timestamptz)"
    place.until(lambda: place.count(last, now["now"]) == SCHEDULES, 60, "the moments until now")
    place.until(lambda: place.count(UNFINISHED) == 0, 300, "all jobs to end")
    moments = place.rows(EACH)
    for one in moments:
        print(
            f"{one['at']:%H:%M} {one['jobs']} jobs of {one['schedules']} schedules, the last after {one['last']:.2f} s"
        )
    done = len({job for job, *_ in place.executions()})
    print(f"{kills} kills, {len(moments)} moments, {sum(one['jobs'] for one in moments)} jobs, {done} done")
    assert leader(place) is not None
    assert moments[0]["at"] == first["at"]
    assert (moments[-1]["at"] - first["at"]).total_seconds() == 60 * (len(moments) - 1) >= 60 * (MINUTES - 2)
    assert {(one["jobs"], one["schedules"]) for one in moments} == {(SCHEDULES, SCHEDULES)}
    assert done == SCHEDULES * len(moments)
