"""Schedules with the processes that keep them: killed, and without RabbitMQ."""

from __future__ import annotations

from datetime import timedelta

from pipeline import job as job_of
from pipeline import schedule, signal, submit
from tests.leaders import another_clock, kill_leader, stand_by
from tests.place import Place
from tests.wait_workflows import race

MANY = 200
ADD = """SELECT pipeline.schedule('single', 's' || n, p_every => '1 second', p_catch_up_for => '1 minute', p_priority => mod(n, 10))
    FROM generate_series(1, %s) AS n"""
LAST = "SELECT min(last_at) FROM pipeline.schedules"
# What each schedule has: its jobs, their moments, and how many seconds lie between the first and the last of these.
EACH = """SELECT s.name, count(j.id) AS jobs, count(DISTINCT m.at) AS moments, min(m.at) - s.created_at AS late,
        extract(epoch FROM max(m.at) - min(m.at)) + 1 AS seconds, max(m.at) = s.last_at AS whole
    FROM pipeline.schedules s LEFT JOIN pipeline.jobs j ON j.tags @> ARRAY['schedule:' || s.name]
        CROSS JOIN LATERAL (SELECT pipeline.moment(j.id) AS at) m
    GROUP BY s.id ORDER BY s.id"""
# Of all phases: how many jobs wait for the relay alone.
WAITING = "SELECT sum((waiting->>'sending')::integer) AS n FROM pipeline.stats()"


def test_each_moment_has_one_job_however_often_the_leader_is_killed(place: Place) -> None:
    """200 moments a second; one of the processes has a wrong clock, which has no say."""
    stand_by(place, *another_clock())
    for _ in range(3):
        stand_by(place)
    place.db.execute(ADD, (MANY,))
    for _ in range(3):
        before = place.row(LAST)
        place.until(lambda: place.row(LAST) != before, what="the next moments")  # noqa: B023  called at once
        kill_leader(place)
    [now] = place.rows("SELECT now()")
    place.until(lambda: place.row(f"{LAST} HAVING min(last_at) > %s", now["now"]), what="all moments until now")
    found = place.rows(EACH)
    assert len(found) == MANY
    for one in found:
        assert one["jobs"] == one["moments"] == one["seconds"] >= 3, one
        assert one["whole"] and timedelta(0) < one["late"] <= timedelta(seconds=1), one


def test_schedules_go_on_while_rabbitmq_is_away(place: Place) -> None:
    """PostgreSQL alone is needed: the jobs are there, wait, and are sent when it is back."""
    place.worker()
    place.servers.rabbitmq.delete_vhost(place.vhost)
    try:
        schedule(None, "single", "often", every=timedelta(seconds=1))
        place.until(lambda: place.count("SELECT count(*) FROM pipeline.jobs") >= 2, what="jobs of two moments")
    finally:
        place.servers.rabbitmq.create_vhost(place.vhost)
    jobs = [row["id"] for row in place.rows("SELECT id FROM pipeline.jobs ORDER BY id LIMIT 2")]
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}


def test_times_that_jobs_wait_for_are_over_while_rabbitmq_is_away(place: Place) -> None:
    """A wait for an event, and a due time: what comes later is too late, and the jobs are sent when it is back."""
    place.load("tests.wait_workflows")
    place.worker()
    asked, later = race.submit({"seconds": 2}), submit(None, "single", delay=timedelta(seconds=2))
    place.until(lambda: asked.status().wait_reason == "event", what="the wait for an event")
    place.servers.rabbitmq.delete_vhost(place.vhost)
    try:
        for look in (asked.status, job_of(later).status):
            place.until(lambda look=look: look().wait_reason == "sending", what="the time to be over")  # type: ignore[misc]
            assert look().due_at is None
        assert signal(None, asked.id, "answer", "signal") == "kept"
        assert {row["n"] for row in place.rows(WAITING)} == {2}
    finally:
        place.servers.rabbitmq.create_vhost(place.vhost)
    assert asked.result(timeout=30) == "timeout"
    assert place.finished(later)[0]["status"] == "succeeded"
