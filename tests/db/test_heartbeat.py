"""pipeline.heartbeat, pipeline.alive, pipeline.progress and the view of processors."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.db import clock, steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold


def beat(db: Db, *holds: Hold, worker: str = "w1") -> dict[UUID, str]:
    found = steps.rows(
        db,
        "SELECT * FROM pipeline.heartbeat(%s, %s::uuid[], %s::bigint[], NULL, '{}')",
        worker,
        [hold.job for hold in holds],
        [hold.fence for hold in holds],
    )
    return {row["job_id"]: row["status"] for row in found}


def progress(db: Db, hold: Hold) -> bool:
    return bool(steps.one(db, "SELECT pipeline.progress(%s, %s, 3, 7)", hold.job, hold.fence))


def test_one_statement_beats_for_all_jobs_of_a_process(database: Db) -> None:
    """Nothing comes back while all is well; nobody else's job is touched."""
    steps.sign_on(database, "w1")
    mine, other = [steps.held(database) for _ in range(3)], steps.held(database, worker="w2")
    clock.let_pass(database, 100)
    assert beat(database, *mine) == {}
    fresh = {
        row["id"]
        for row in steps.rows(database, "SELECT id FROM pipeline.jobs WHERE heartbeat_at > now() - interval '9 s'")
    }
    assert fresh == {hold.job for hold in mine}
    assert other.job not in fresh
    assert steps.one(database, "SELECT heartbeat_at > now() - interval '9 s' FROM pipeline.workers")


def test_it_brings_back_what_this_worker_no_longer_holds_and_why(database: Db) -> None:
    """G5: a running attempt is told within one heartbeat."""
    gone, taken, done, kept = (steps.held(database) for _ in range(4))
    never = Hold(uuid4(), 1)
    steps.cancel(database, gone.job)
    steps.take_over(database, taken)
    steps.complete(database, done)
    assert beat(database, gone, taken, done, kept, never) == {
        gone.job: "cancelled",
        taken.job: "running",
        done.job: "succeeded",
        never.job: "deleted",
    }


def test_a_wrong_fence_beats_for_nobody(database: Db) -> None:
    """The new holder's heartbeat is its own business."""
    hold = steps.held(database)
    with steps.nothing_changes(database):
        for wrong in steps.wrong_fences(hold):
            assert beat(database, wrong) == {hold.job: "running"}


def test_a_worker_without_jobs_beats_too_and_comes_back_from_the_dead(database: Db) -> None:
    """One that was given up while its network was away signs on again by itself."""
    steps.sign_on(database, "w1", alive=False)
    steps.reclaim(database)
    assert beat(database) == {}
    assert steps.one(database, "SELECT stopped_at IS NULL FROM pipeline.workers")


def test_a_worker_is_alive_while_its_session_holds_its_lock(connect: Connect) -> None:
    """PostgreSQL drops the lock the moment the session ends."""
    worker, watch = connect(), connect()
    alive = "SELECT pipeline.alive('w1')"
    steps.sign_on(worker, "w1", alive=False)
    assert steps.one(watch, alive) is False
    number = steps.one(watch, "SELECT no FROM pipeline.workers")
    worker.execute("SELECT pg_advisory_lock('pipeline.workers'::regclass::oid::integer, %s)", (number,))
    assert steps.one(watch, alive) is True
    assert steps.one(watch, "SELECT pipeline.alive('nobody')") is False
    steps.die(worker, number)
    assert steps.one(watch, alive) is False


def test_progress_is_fenced(database: Db) -> None:
    """A lost attempt learns of it and writes nothing."""
    hold = steps.held(database)
    with steps.nothing_changes(database):
        assert not any(progress(database, wrong) for wrong in steps.wrong_fences(hold))
    assert progress(database, hold) is True
    assert steps.job(database, hold.job)["progress_done"] == 3
    steps.cancel(database, hold.job)
    with steps.nothing_changes(database):
        assert progress(database, hold) is False


def test_a_pools_processors_are_idle_busy_or_in_error(database: Db) -> None:
    """Named <phase>-processor-1 and on."""
    steps.held(database, "pooled")
    clock.let_pass(database, 301)
    steps.held(database, "pooled")
    found = steps.rows(
        database, "SELECT processor, state FROM pipeline.processors WHERE workflow = 'pooled' ORDER BY 1"
    )
    assert [(row["processor"], row["state"]) for row in found] == [
        ("narrow-processor-1", "error"),
        ("narrow-processor-2", "busy"),
        ("narrow-processor-3", "idle"),
    ]
