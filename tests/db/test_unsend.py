"""pipeline.unsend: what did not reach the broker is sent again."""

from __future__ import annotations

from tests.db import steps
from tests.db.steps import Db


def test_an_unconfirmed_message_goes_out_again_under_a_new_number(database: Db) -> None:
    """Should the old one turn up after all, it is superseded."""
    job_id = steps.submit(database)
    steps.admit(database)
    assert steps.unsend(database, job_id, 1) == 1
    row, waits = steps.job(database, job_id), steps.waiting(database, job_id)
    assert (row["status"], row["send"], row["attempts"]) == ("pending", 2, 0)
    assert waits is not None
    assert (waits["sent_at"], waits["sent_by"], waits["reason"]) == (None, None, "unconfirmed")
    assert [one["send"] for one in steps.admit(database)] == [2]
    assert steps.claim(database, job_id, send=1)["verdict"] == "superseded"
    assert steps.claim(database, job_id, send=2)["verdict"] == "claimed"


def test_it_keeps_its_place_in_the_line(database: Db) -> None:
    """Oldest first, also the second time."""
    first, second = steps.submit(database), steps.submit(database)
    steps.admit(database, 1)
    steps.unsend(database, first, 1)
    assert [row["job_id"] for row in steps.admit(database)] == [first, second]


def test_another_number_changes_nothing(database: Db) -> None:
    """Neither an older nor a later one, nor the same twice."""
    job_id = steps.submit(database)
    steps.admit(database)
    with steps.nothing_changes(database):
        assert steps.unsend(database, job_id, 0) == steps.unsend(database, job_id, 2) == 0
    steps.unsend(database, job_id, 1)
    with steps.nothing_changes(database):
        assert steps.unsend(database, job_id, 1) == 0


def test_what_is_not_out_cannot_be_taken_back(database: Db) -> None:
    """Waiting, running and ended jobs stay as they are."""
    waits, runs, done = steps.submit(database, due=steps.FUTURE), steps.held(database), steps.held(database)
    steps.complete(database, done)
    with steps.nothing_changes(database):
        for job_id in (waits, runs.job, done.job):
            assert steps.unsend(database, job_id, steps.job(database, job_id)["send"]) == 0


def test_nothing_at_all_is_fine(database: Db) -> None:
    """An empty sweep."""
    assert steps.one(database, "SELECT pipeline.unsend(NULL, NULL, 'x')") == 0
