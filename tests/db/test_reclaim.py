"""pipeline.reclaim: the backstop behind redelivery."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db


def test_a_dead_workers_jobs_wait_again(database: Db) -> None:
    """Each with a crash counted, under a new send number; the worker is signed off."""
    steps.sign_on(database, "w1", alive=False)
    holds = [steps.held(database) for _ in range(3)]
    found = steps.reclaim(database)
    assert [(row["job_id"], row["verdict"], row["worker"]) for row in found] == [
        (h.job, "crashed", "w1") for h in holds
    ]
    for hold in holds:
        row = steps.job(database, hold.job)
        assert (row["status"], row["crashes"], row["send"], row["fence"]) == ("pending", 1, 2, 1)
    assert steps.one(database, "SELECT stopped_at IS NOT NULL FROM pipeline.workers")
    with steps.nothing_changes(database):
        assert steps.reclaim(database) == []


def test_a_living_workers_jobs_stay(database: Db) -> None:
    """Whatever the caller thinks it saw."""
    steps.sign_on(database, "w1")
    steps.held(database)
    with steps.nothing_changes(database):
        assert steps.reclaim(database) == []


def test_a_stale_heartbeat_ends_the_attempt_though_the_lock_is_held(database: Db) -> None:
    """A frozen process loses its jobs after the phase's limit."""
    steps.sign_on(database, "w1")
    hold = steps.held(database)
    clock.let_pass(database, 301)
    assert [(row["job_id"], row["verdict"]) for row in steps.reclaim(database)] == [(hold.job, "stale")]
    assert steps.outcomes(database, hold.job) == ["stale"]


def test_an_isolated_attempt_is_not_blamed_for_its_workers_death(database: Db) -> None:
    """Only its own child's death counts."""
    steps.sign_on(database, "w1", alive=False)
    hold = steps.held(database, "caged")
    assert [row["verdict"] for row in steps.reclaim(database)] == ["crashed"]
    assert steps.job(database, hold.job)["crashes"] == 0


def test_the_last_crash_is_reported_as_a_poison_pill(database: Db) -> None:
    """With the send number of its last message, for its dead letter."""
    steps.sign_on(database, "w1", alive=False)
    hold = steps.held(database)
    database.execute("UPDATE pipeline.jobs SET crashes = 2")
    [found] = steps.reclaim(database)
    assert (found["verdict"], found["queue"], found["send"]) == ("poisoned", "single.act", 1)
    assert steps.job(database, hold.job)["status"] == "failed"


def test_what_a_dead_worker_had_sent_unconfirmed_is_sent_again(database: Db) -> None:
    """What was confirmed before its last word is in the broker; what came after may not be."""
    number = steps.sign_on(database, "w1", alive=False)
    confirmed, doubtful, others = (steps.submit(database) for _ in range(3))
    for job_id, sender, offset in ((confirmed, number, -5), (doubtful, number, 5), (others, number + 1, 5)):
        database.execute(
            "UPDATE pipeline.outbox SET sent_by = %s, sent_at = (SELECT confirmed_at FROM pipeline.workers) + make_interval(secs => %s)"
            " WHERE job_id = %s",
            (sender, offset, job_id),
        )
    steps.reclaim(database)
    assert [steps.job(database, job_id)["send"] for job_id in (confirmed, doubtful, others)] == [1, 2, 1]
    waits = steps.waiting(database, doubtful)
    assert waits is not None
    assert (waits["sent_at"], waits["reason"]) == (None, "sender_died")


def test_a_row_that_somebody_has_locked_is_left_for_the_next_time(database: Db, connect: Connect) -> None:
    """A frozen worker's open transaction must not stop the relay, in whose thread this runs."""
    number = steps.sign_on(database, "w1", alive=False)
    hold = steps.held(database)
    frozen = connect()
    with frozen.transaction():
        frozen.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (hold.job,))
        assert steps.reclaim(database) == []
        assert steps.one(database, "SELECT stopped_at FROM pipeline.workers WHERE no = %s", number) is None
    assert [row["verdict"] for row in steps.reclaim(database)] == ["crashed"]


def refund(db: Db, *holds: steps.Hold) -> list[object]:
    found = steps.rows(
        db,
        "SELECT pipeline.refund_crash('w1', %s::uuid[], %s::bigint[]) AS job",
        [hold.job for hold in holds],
        [hold.fence for hold in holds],
    )
    return [row["job"] for row in found]


def test_a_worker_that_comes_back_has_its_crashes_refunded_once(database: Db) -> None:
    """It was cut off and never crashed; what ran elsewhere meanwhile stays there."""
    steps.sign_on(database, "w1", alive=False)
    hold = steps.held(database)
    steps.reclaim(database)
    elsewhere = steps.hold(database, hold.job, "w2")
    assert steps.job(database, hold.job)["crashes"] == 1
    assert refund(database, hold) == refund(database, hold) == [hold.job]
    row = steps.job(database, hold.job)
    assert (row["crashes"], row["status"], row["fence"], row["locked_by"]) == (0, "running", elsewhere.fence, "w2")
    assert steps.outcomes(database, hold.job) == ["released"]


def test_a_poison_pill_that_was_none_starts_again(database: Db) -> None:
    """The last of its crashes did not happen."""
    steps.sign_on(database, "w1", alive=False)
    hold = steps.held(database)
    database.execute("UPDATE pipeline.jobs SET crashes = 2")
    steps.reclaim(database)
    assert steps.job(database, hold.job)["status"] == "failed"
    assert refund(database, hold) == [hold.job]
    assert steps.job(database, hold.job)["status"] == "pending"


def test_an_attempt_that_lost_its_job_otherwise_is_refunded_nothing(database: Db) -> None:
    """A cancel is no crash."""
    hold = steps.held(database)
    steps.cancel(database, hold.job)
    with steps.nothing_changes(database):
        assert refund(database, hold) == [hold.job]
