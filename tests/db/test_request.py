"""pipeline.request_send: actor.send(job_id) from an app."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.db import steps
from tests.db.steps import Db


def request(db: Db, job_id: UUID, queue: str = "single.act") -> str:
    return str(steps.one(db, "SELECT pipeline.request_send(%s, %s)", job_id, queue))


def test_a_job_that_waits_at_the_gate_is_accepted_once(database: Db) -> None:
    """Asking again changes nothing, and the relay sends it once."""
    job_id = steps.submit(database)
    assert request(database, job_id) == "accepted"
    with steps.nothing_changes(database):
        assert request(database, job_id) == "already_queued"
    assert [row["job_id"] for row in steps.admit(database)] == [job_id]


def test_where_it_cannot_be_the_reason_comes_back_and_nothing_changes(database: Db) -> None:
    """One word for each."""
    sent, runs, done = steps.submit(database), steps.held(database), steps.held(database)
    later = steps.submit(database, due=steps.FUTURE)
    steps.complete(database, done)
    with steps.nothing_changes(database):
        assert request(database, sent) == "already_queued"
        assert request(database, runs.job) == "already_running"
        assert request(database, done.job) == "final"
        assert request(database, later) == "not_due"
        assert request(database, sent, "triple.first") == "other_phase"
        assert request(database, uuid4()) == "unknown_job"


def test_a_full_queue_is_said(database: Db) -> None:
    """The job waits in PostgreSQL and is sent when there is room."""
    jobs = [steps.submit(database, "small") for _ in range(6)]
    steps.admit(database)
    with steps.nothing_changes(database):
        assert request(database, jobs[5], "small.queue") == "queue_full"
