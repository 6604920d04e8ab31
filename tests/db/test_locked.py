"""An application holds rows in a transaction that stays open: the engine is answered at once and waits for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold

Step = Callable[[Db, Hold], object]


@pytest.fixture
def engine(connect: Connect) -> Db:
    """A session of the engine: whatever makes it wait fails the test."""
    db = connect()
    db.execute("SET lock_timeout = '1s'")
    return db


@contextmanager
def held_by_an_application(connect: Connect, *jobs: UUID) -> Iterator[None]:
    """An uncommitted cancel, rolled back at the end."""
    app = connect()
    app.execute("BEGIN")
    for job_id in jobs:
        assert steps.cancel(app, job_id)
    yield
    app.execute("ROLLBACK")


def verdict(answer: object) -> object:
    return answer["verdict"] if isinstance(answer, dict) else answer


SETTLEMENTS: dict[str, Step] = {
    "complete": steps.complete,
    "retry": steps.retry,
    "fail": steps.fail,
    "snooze": steps.snooze,
    "crash": steps.crash,
    "take_over": steps.take_over,
}


@pytest.mark.parametrize("name", SETTLEMENTS)
@pytest.mark.parametrize("workflow", ["single", "pooled"])
def test_a_settlement_that_finds_the_row_locked_says_so_and_does_nothing(
    engine: Db, connect: Connect, name: str, workflow: str
) -> None:
    """It is not lost: asked again afterwards it wins."""
    hold = steps.held(engine, workflow)
    with held_by_an_application(connect, hold.job), steps.nothing_changes(engine):
        assert verdict(SETTLEMENTS[name](engine, hold)) == "locked"
    assert verdict(SETTLEMENTS[name](engine, hold)) not in ("locked", "lost")


@pytest.mark.parametrize("workflow", ["single", "pooled"])
def test_a_claim_takes_the_others_and_says_of_the_locked_one_that_it_is(
    engine: Db, connect: Connect, workflow: str
) -> None:
    """Neither its neighbours nor the other jobs of its phase have to wait."""
    jobs = [steps.submit(engine, workflow) for _ in range(3)]
    steps.admit(engine)
    with held_by_an_application(connect, jobs[1]):
        answers = steps.claim_all(engine, [steps.ask(engine, job_id) for job_id in jobs])
        assert [answer["verdict"] for answer in answers] == ["claimed", "locked", "claimed"]
    assert steps.claim(engine, jobs[1])["verdict"] == "claimed"


@pytest.mark.parametrize("workflow", ["single", "pooled", "plain"])
def test_a_completion_moves_the_others_and_says_of_the_locked_one_that_it_is(
    engine: Db, connect: Connect, workflow: str
) -> None:
    """One statement for many jobs; one of them is in an application's hands."""
    holds = [steps.held(engine, workflow) for _ in range(3)]
    with held_by_an_application(connect, holds[1].job):
        answers = steps.rows(
            engine,
            "SELECT * FROM pipeline.complete(1, %s::uuid[], %s::bigint[], NULL, NULL) ORDER BY place",
            [hold.job for hold in holds],
            [hold.fence for hold in holds],
        )
        assert [answer["verdict"] == "locked" for answer in answers] == [False, True, False]
    assert steps.complete(engine, holds[1])["verdict"] in ("done", "handed_over")


def test_a_committed_cancel_is_lost_and_not_locked(engine: Db, connect: Connect) -> None:
    """The application made up its mind: nothing of the attempt is kept."""
    hold = steps.held(engine)
    assert steps.cancel(connect(), hold.job)
    assert verdict(steps.complete(engine, hold)) == "lost"


def test_the_heartbeat_of_the_others_is_written(engine: Db, connect: Connect) -> None:
    """And the locked job is not called lost."""
    steps.sign_on(engine, "w1")
    locked, free = steps.held(engine), steps.held(engine)
    engine.execute("UPDATE pipeline.jobs SET heartbeat_at = now() - interval '1 minute'")
    statement = "SELECT * FROM pipeline.heartbeat('w1', %s::uuid[], %s::bigint[], NULL, '{}')"
    with held_by_an_application(connect, locked.job):
        assert steps.rows(engine, statement, [locked.job, free.job], [locked.fence, free.fence]) == []
        fresh = "SELECT heartbeat_at > now() - interval '30 seconds' FROM pipeline.jobs WHERE id = %s"
        assert steps.one(engine, fresh, free.job) and not steps.one(engine, fresh, locked.job)


def test_a_job_that_was_refused_its_heartbeat_is_no_suspect_while_it_is_locked(engine: Db, connect: Connect) -> None:
    """Else it would be reclaimed the moment it is free, and its worker is alive."""
    hold = steps.held(engine)
    engine.execute("UPDATE pipeline.jobs SET heartbeat_at = now() - interval '1 hour'")
    silent = "SELECT job_id FROM pipeline.silent_jobs('40 seconds')"
    with held_by_an_application(connect, hold.job):
        assert steps.rows(engine, silent) == []
    assert [row["job_id"] for row in steps.rows(engine, silent)] == [hold.job]


def test_checkpoints_and_progress_are_told_that_they_have_to_ask_again(engine: Db, connect: Connect) -> None:
    """Null: neither won nor lost."""
    hold = steps.held(engine)
    with held_by_an_application(connect, hold.job):
        assert steps.one(engine, "SELECT pipeline.hold(%s, %s)", hold.job, hold.fence) is None
        assert steps.one(engine, "SELECT pipeline.progress(%s, %s, 1, 2)", hold.job, hold.fence) is None
    assert steps.one(engine, "SELECT pipeline.hold(%s, %s)", hold.job, hold.fence) is True


def test_an_unconfirmed_message_of_a_locked_job_is_still_known_as_sent(engine: Db, connect: Connect) -> None:
    """So that whoever published it asks again."""
    locked, free = steps.submit(engine), steps.submit(engine)
    steps.admit(engine)
    still = "SELECT pipeline.still_sent(%s::uuid[], ARRAY[1, 1]::bigint[])"
    with held_by_an_application(connect, locked):
        assert steps.one(
            engine, "SELECT pipeline.unsend(%s::uuid[], ARRAY[1, 1]::bigint[], 'unconfirmed')", [locked, free]
        )
        assert steps.one(engine, still, [locked, free]) == locked
    assert steps.unsend(engine, locked, 1) == 1
    assert steps.rows(engine, still, [locked, free]) == []


def test_a_child_ends_while_an_application_adds_to_its_batch(engine: Db, connect: Connect) -> None:
    """Its end is written down beside the batch, and counted once the batch is free; the callback is sent once."""
    batch = steps.open_batch(engine, "plain")
    hold = steps.held(engine, batch=batch)
    app = connect()
    app.execute("BEGIN")
    second = steps.submit(app, batch=batch)
    assert steps.complete(engine, hold)["verdict"] == "done"
    assert steps.one(engine, "SELECT pipeline.finish_batches()") is True
    steps.seal(app, batch)
    app.execute("COMMIT")
    assert steps.one(engine, "SELECT pipeline.finish_batches()") is False
    assert steps.batch(engine, batch)["remaining"] == 1
    steps.complete(engine, steps.hold(engine, second))
    found = steps.batch(engine, batch)
    assert (found["remaining"], found["completed_at"] is not None) == (0, True)
    assert steps.one(engine, "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1


def test_reclaim_leaves_a_locked_job_for_the_next_time(engine: Db, connect: Connect) -> None:
    """And continues with the dead worker's other jobs."""
    number = steps.sign_on(engine, "w1", alive=False)
    locked, free = steps.held(engine), steps.held(engine)
    with held_by_an_application(connect, locked.job):
        assert [row["job_id"] for row in steps.reclaim(engine)] == [free.job]
        assert steps.one(engine, "SELECT stopped_at FROM pipeline.workers WHERE no = %s", number) is None
    assert [row["job_id"] for row in steps.reclaim(engine)] == [locked.job]
