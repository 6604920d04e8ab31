"""pipeline.complete: success and hand-over."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.db import steps
from tests.db.steps import Db, Hold


def test_the_last_phase_ends_the_job(database: Db) -> None:
    """Succeeded, with its result, its history, and nothing left to send."""
    hold = steps.held(database)
    answer = steps.complete(database, hold, {"n": 1})
    row = steps.job(database, hold.job)
    assert answer["verdict"] == "done"
    assert (row["status"], row["result"], row["locked_by"]) == ("succeeded", {"act": {"n": 1}}, None)
    assert row["completed_at"] == row["updated_at"]
    assert steps.waiting(database, hold.job) is None
    assert steps.outcomes(database, hold.job) == ["succeeded"]


def test_an_earlier_phase_hands_over_with_fresh_budgets_and_a_new_send(database: Db) -> None:
    """It waits at the gate of the next phase; the relay sends it."""
    hold = steps.held(database, "triple")
    assert steps.retry(database, hold) == "retried"
    hold = steps.hold(database, hold.job)
    before = steps.job(database, hold.job)
    answer = steps.complete(database, hold, worker_no=7)
    row, waits = steps.job(database, hold.job), steps.waiting(database, hold.job)
    assert answer["verdict"] == "handed_over"
    assert row["send"] == before["send"] + 1
    assert (row["status"], row["phase"], row["attempts"], row["crashes"]) == ("pending", "second", 0, 0)
    assert (row["fence"], row["error_message"]) == (before["fence"], None)
    assert waits is not None
    assert (waits["sent_by"], waits["sent_at"]) == (None, None)


def test_a_job_walks_through_its_phases_and_gathers_their_results(database: Db) -> None:
    """Later phases see what earlier ones returned."""
    hold = steps.held(database, "triple")
    for n in range(3):
        steps.complete(database, hold, {"n": n})
        if n < 2:
            answer = steps.claim(database, hold.job)
            hold = Hold(hold.job, answer["fence"])
    row = steps.job(database, hold.job)
    assert row["result"] == {"first": {"n": 0}, "second": {"n": 1}, "third": {"n": 2}}
    assert [(one["phase"], one["fence"]) for one in steps.history(database, hold.job)] == [
        ("first", 1),
        ("second", 2),
        ("third", 3),
    ]


def test_a_wrong_fence_changes_nothing(database: Db) -> None:
    """G2: the attempt learns that it lost."""
    hold = steps.held(database, "triple")
    for wrong in steps.wrong_fences(hold):
        with steps.nothing_changes(database):
            assert steps.complete(database, wrong, {"n": 1})["verdict"] == "lost"


def test_a_job_that_does_not_run_cannot_be_completed(database: Db) -> None:
    """Pending, retryable, cancelled and failed ones keep what they have."""
    pending = Hold(steps.submit(database, due=steps.FUTURE), 0)
    retried, gone, bad = steps.held(database), steps.held(database), steps.held(database)
    steps.retry(database, retried)
    steps.cancel(database, gone.job)
    steps.fail(database, bad)
    for hold in (pending, retried, gone, bad):
        with steps.nothing_changes(database):
            assert steps.complete(database, hold)["verdict"] == "lost"


def test_a_completion_repeated_after_an_unknown_commit_is_recognised(database: Db) -> None:
    """It neither writes again nor counts as lost, even when the job has continued meanwhile."""
    hold = steps.held(database, "triple")
    steps.complete(database, hold)
    with steps.nothing_changes(database):
        assert steps.complete(database, hold)["verdict"] == "repeated"
    steps.claim(database, hold.job, "w2")
    with steps.nothing_changes(database):
        assert steps.complete(database, hold)["verdict"] == "repeated"


def test_a_batch_of_completions_is_answered_each_in_its_place(database: Db) -> None:
    """One lost claim does not hurt its neighbours."""
    good, lost, last = steps.held(database, "triple"), steps.held(database), steps.held(database)
    answers = steps.rows(
        database,
        "SELECT * FROM pipeline.complete(1, %s::uuid[], %s::bigint[], %s::jsonb[], NULL) ORDER BY place",
        [last.job, lost.job, good.job],
        [last.fence, lost.fence + 1, good.fence],
        [Jsonb({}), None, None],
    )
    assert [row["verdict"] for row in answers] == ["done", "lost", "handed_over"]
    assert [row["place"] for row in answers] == [1, 2, 3]


def test_a_hand_over_wakes_a_relay_that_sleeps(database: Db) -> None:
    """One that is awake looks again anyway."""
    holds = [steps.held(database, "triple") for _ in range(2)]
    database.execute("LISTEN pipeline_relay")
    steps.admit(database, asleep=False)
    steps.complete(database, holds[0])
    assert list(database.notifies(timeout=0.2, stop_after=1)) == []
    steps.admit(database)
    assert steps.admit(database, asleep=True) == []
    steps.complete(database, holds[1])
    assert len(list(database.notifies(timeout=5, stop_after=1))) == 1


def test_a_step_that_the_state_machine_does_not_have_is_refused(database: Db) -> None:
    """Also to somebody with a psql: a job would be lost, or run twice."""
    job = steps.submit(database)
    with pytest.raises(psycopg.errors.DatabaseError, match="cannot go from pending to succeeded") as refused:
        database.execute("UPDATE pipeline.jobs SET status = 'succeeded', completed_at = now()")
    assert refused.value.sqlstate == "PL007"
    assert steps.job(database, job)["status"] == "pending"
