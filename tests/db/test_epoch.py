"""pipeline.epoch: fences across a failover that lost the last commits."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold

# As if what is in this database had been written on another server.
TAKEN_OVER = "UPDATE pipeline.epochs SET timeline = timeline + 1"


@pytest.fixture
def forgotten(database: Db) -> Iterator[Hold]:
    """An attempt that still runs somewhere, though its claim was lost."""
    job_id = steps.submit(database, "triple")
    steps.admit(database)
    with database.transaction(force_rollback=True):
        hold = steps.hold(database, job_id)
    yield hold


def test_without_a_failover_a_lost_claim_would_give_its_fence_away_again(database: Db, forgotten: Hold) -> None:
    """What the epoch is for: two attempts would hold the job under one fence."""
    assert steps.claim(database, forgotten.job, "w2")["fence"] == forgotten.fence


def test_after_a_failover_no_fence_is_given_out_again(database: Db, forgotten: Hold) -> None:
    """G2: the attempt that was forgotten finds that it lost its job, whatever it tries."""
    database.execute(TAKEN_OVER)
    database.execute("SELECT pipeline.note_epoch()")
    new = steps.hold(database, forgotten.job, "w2")
    assert new.fence > forgotten.fence
    assert steps.one(database, "SELECT pipeline.claims(%s)", new.fence) == forgotten.fence
    assert steps.complete(database, forgotten)["verdict"] == "lost"
    assert steps.retry(database, forgotten) == "lost"
    assert steps.crash(database, forgotten) == "lost"
    beat = "SELECT * FROM pipeline.heartbeat(%s, %s, %s, now(), '{}')"
    assert steps.rows(database, beat, forgotten.worker, [forgotten.job], [forgotten.fence])
    assert steps.complete(database, new)["verdict"] == "handed_over"


def test_nothing_is_claimed_or_completed_before_a_worker_has_noted_the_failover(database: Db) -> None:
    """An outage for whoever asks, who asks again; the first heartbeat ends it."""
    hold, job_id = steps.held(database), steps.submit(database)
    steps.admit(database)
    database.execute(TAKEN_OVER)
    with pytest.raises(psycopg.errors.CannotConnectNow):
        steps.claim(database, job_id)
    with pytest.raises(psycopg.errors.CannotConnectNow):
        steps.complete(database, hold)
    database.execute("SELECT * FROM pipeline.heartbeat('w1', '{}', '{}', now(), '{}')")
    assert steps.complete(database, hold)["verdict"] == "done", "a fence of before is as good as ever"
    assert steps.claim(database, job_id)["verdict"] == "claimed"


def test_epochs_only_grow_and_a_fence_stays_exact_as_a_javascript_number(database: Db) -> None:
    """Noting twice is noting once."""
    for _ in range(3):
        database.execute(TAKEN_OVER)
        assert steps.one(database, "SELECT pipeline.note_epoch()") is True
        assert steps.one(database, "SELECT pipeline.note_epoch()") is False
    epochs = [
        row["epoch"] for row in steps.rows(database, "SELECT epoch FROM pipeline.epochs ORDER BY began_at, epoch")
    ]
    assert epochs == sorted(set(epochs)) and len(epochs) == 4
    fence = steps.one(database, "SELECT pipeline.next_fence(7, %s)", epochs[-1])
    assert fence < 2**53 and steps.one(database, "SELECT pipeline.claims(%s)", fence) == 8
    assert steps.one(database, "SELECT pipeline.follows(%s, 7)", fence)


def test_a_repeated_completion_is_known_again_after_a_failover(database: Db) -> None:
    """Its COMMIT arrived and its answer did not: the job is this worker's, in the next phase."""
    number = steps.sign_on(database, "w1")
    hold = steps.held(database, "triple")
    query = (
        "SELECT verdict, fence FROM pipeline.complete(%s, ARRAY[%s], ARRAY[%s]::bigint[], '{NULL}', '{triple.second}')"
    )
    first = steps.rows(database, query, number, hold.job, hold.fence)
    database.execute(TAKEN_OVER)
    database.execute("SELECT pipeline.note_epoch()")
    assert steps.rows(database, query, number, hold.job, hold.fence) == first
    assert first[0]["verdict"] == "continued"


def test_a_job_whose_end_was_lost_is_released_by_its_own_worker(database: Db, connect: Connect) -> None:
    """It still names a holder who is alive and does not run it: nobody else would take it for minutes."""
    hold, running = steps.held(database), steps.held(database)
    database.execute("UPDATE pipeline.epochs SET began_at = now() - interval '1 minute'")
    database.execute("UPDATE pipeline.jobs SET heartbeat_at = now() - interval '2 minutes'")
    beat = "SELECT * FROM pipeline.heartbeat('w1', %s, %s, now(), '{}')"
    assert steps.rows(database, beat, [running.job], [running.fence]) == []
    assert steps.job(database, running.job)["status"] == "running"
    row = steps.job(database, hold.job)
    assert (row["status"], row["crashes"], steps.outcomes(database, hold.job)) == ("pending", 0, ["released"])
