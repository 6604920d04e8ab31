"""A job that has not begun by its time never does, whoever is away."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pipeline import submit
from tests.place import Place

TWO = timedelta(seconds=2)
LATE = "SELECT extract(epoch FROM completed_at - expires_at)::float8 AS late FROM pipeline.jobs WHERE id = %s"


def test_it_expires_in_its_time_while_rabbitmq_is_away(place: Place) -> None:
    """PostgreSQL alone is needed, and the leader does not look around for it: it was told."""
    place.worker()
    place.servers.rabbitmq.delete_vhost(place.vhost)
    try:
        job = submit(None, "single", expires=TWO)
        [row] = place.finished(job)
    finally:
        place.servers.rabbitmq.create_vhost(place.vhost)
    assert (row["status"], row["cause"], place.attempts(job)[-1]["outcome"]) == (
        "failed",
        "Expired: it had not begun by # UTC",
        "expired",
    )
    assert 0 <= place.rows(LATE, job)[0]["late"] < 1


def test_its_message_has_nothing_to_do_any_more(place: Place) -> None:
    """It was in the queue when the time was over; the next worker acknowledges it."""
    place.worker(queues=("nothing",))
    job = submit(None, "single", expires=TWO)
    place.until(lambda: place.depth("single.act") == 1, what="the message to arrive")
    assert place.finished(job)[0]["status"] == "failed"
    place.worker()
    after = submit(None, "single")
    place.finished(after)
    place.until(lambda: place.depth("single.act") == 0, what="the messages to be acknowledged")
    assert [execution[0] for execution in place.executions()] == [str(after)]
    assert place.depth("single.act.XQ") == 0


def test_a_job_that_began_in_time_runs_on(place: Place, tmp_path: Path) -> None:
    """However long it takes."""
    place.worker()
    told = tmp_path / "told"
    job = submit(None, "single", {"do": "until_told", "file": str(told)}, expires=timedelta(minutes=5))
    place.running(job)
    # Five minutes later.
    place.db.execute("UPDATE pipeline.jobs SET expires_at = now() - interval '1 second' WHERE id = %s", (job,))
    assert place.count("SELECT pipeline.expire(ARRAY[%s::uuid])", job) == 0
    told.touch()
    assert place.finished(job)[0]["status"] == "succeeded"
