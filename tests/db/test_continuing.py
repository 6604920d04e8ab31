"""pipeline.complete with p_continue: the next phase is claimed where the last one ends."""

from __future__ import annotations

import pytest

from pipeline.store.gateway.reconciliation import EXPECTED
from pipeline.store.gateway.sending import CONTINUED
from tests.db import steps
from tests.db.steps import Db, Hold


def continue_(db: Db, hold: Hold, queue: str = "triple.second") -> steps.Row:
    return steps.complete(db, hold, {"n": 1}, continuing=queue)


def gone_on(db: Db, worker: str = "w1") -> Hold:
    """A hold on a job in its second phase that was never sent there."""
    hold = steps.held(db, "triple", worker)
    return Hold(hold.job, continue_(db, hold)["fence"], worker)


def test_the_job_runs_on_under_a_new_fence_with_the_same_token(database: Db) -> None:
    """One commit: the first phase's history, and the claim of the second."""
    hold = steps.held(database, "triple")
    before, message = steps.job(database, hold.job), steps.waiting(database, hold.job)
    answer = continue_(database, hold)
    row = steps.job(database, hold.job)
    assert (answer["verdict"], answer["fence"], answer["send"]) == ("continued", hold.fence + 1, before["send"])
    assert (answer["max_attempts"], answer["at"]) == (row["max_attempts"], row["locked_at"])
    assert (row["status"], row["phase"], row["fence"]) == ("running", "second", hold.fence + 1)
    assert (row["send"], row["locked_by"], row["delivery"]) == (before["send"], before["locked_by"], before["delivery"])
    assert (row["attempts"], row["crashes"], row["isolated"]) == (0, 0, False)
    assert row["ready_at"] == row["sent_at"] == row["locked_at"]
    assert row["message_phase_id"] == steps.one(database, "SELECT id FROM pipeline.phases WHERE queue = 'triple.first'")
    assert steps.waiting(database, hold.job) == message
    assert steps.outcomes(database, hold.job) == ["succeeded"]


def test_a_job_is_carried_through_all_its_phases(database: Db) -> None:
    """The message is the first phase's all the way; at the end nobody carries the job."""
    hold = gone_on(database)
    answer = continue_(database, hold, "triple.third")
    message_phase_id = steps.job(database, hold.job)["message_phase_id"]
    assert steps.complete(database, Hold(hold.job, answer["fence"]), continuing="triple.third")["verdict"] == "done"
    row = steps.job(database, hold.job)
    assert message_phase_id == steps.one(database, "SELECT id FROM pipeline.phases WHERE queue = 'triple.first'")
    assert (row["status"], row["message_phase_id"]) == ("succeeded", None)
    assert [one["fence"] for one in steps.history(database, hold.job)] == [1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        "paused_until = now() + interval '1 minute'",
        "max_attempts = 1",
        "max_crashes = 1",
        "isolated = true",
        "pool = 1",
        "throttle_count = 1, throttle_seconds = 1",
    ],
)
def test_a_phase_that_must_not_be_entered_this_way_gets_a_message(database: Db, change: str) -> None:
    """A shut gate, a pool without a free place, or a failure that would put the message into another phase's dead letters."""
    hold = steps.held(database, "triple")
    database.execute(f"UPDATE pipeline.phases SET {change} WHERE queue = 'triple.second'")
    answer = continue_(database, hold)
    row = steps.job(database, hold.job)
    assert answer["verdict"] == "handed_over"
    assert (row["status"], row["phase"], row["message_phase_id"], row["fence"]) == (
        "pending",
        "second",
        None,
        hold.fence,
    )
    assert steps.waiting(database, hold.job) is not None


def test_nobody_who_waits_before_the_next_phase_is_overtaken(database: Db) -> None:
    """G9: a job that waits unsent at that gate goes first."""
    waits, hold = steps.held(database, "triple"), steps.held(database, "triple")
    database.execute(
        "UPDATE pipeline.phases SET paused_until = now() + interval '1 minute' WHERE queue = 'triple.second'"
    )
    steps.complete(database, waits)
    database.execute("UPDATE pipeline.phases SET paused_until = NULL")
    assert continue_(database, hold)["verdict"] == "handed_over"


def test_a_younger_job_that_waits_there_does_not_go_first(database: Db) -> None:
    """Nor does one of a lower priority, however old."""
    low, hold = steps.held(database, "triple"), steps.held(database, "triple", priority=1)
    young = steps.held(database, "triple", priority=1)
    for waits in (low, young):
        steps.complete(database, waits)
    assert continue_(database, hold)["verdict"] == "continued"


def test_a_place_of_the_next_pool_is_taken_and_the_old_one_left(database: Db) -> None:
    """In the same statement; when the last one is taken, the next job waits at the gate."""
    for queue, pool in (("triple.first", 3), ("triple.second", 2)):
        steps.set_pool(database, queue, pool)
    holds = [steps.held(database, "triple") for _ in range(3)]
    assert [continue_(database, hold)["verdict"] for hold in holds] == ["continued", "continued", "handed_over"]
    taken = "SELECT ph.queue, p.number, p.job_id FROM pipeline.places p JOIN pipeline.phases ph ON ph.id = p.phase_id WHERE job_id IS NOT NULL ORDER BY 2"
    assert [(row["queue"], row["job_id"]) for row in steps.rows(database, taken)] == [
        ("triple.second", hold.job) for hold in holds[:2]
    ]


def test_a_pool_can_be_taken_away_while_jobs_run(database: Db) -> None:
    """F11: they end like any other."""
    steps.set_pool(database, "triple.first", 1)
    hold = steps.held(database, "triple")
    steps.set_pool(database, "triple.first", None)
    assert continue_(database, hold)["verdict"] == "continued"


def test_another_next_phase_than_expected_gets_a_message(database: Db) -> None:
    """A worker of an older version may know other chains than PostgreSQL."""
    assert continue_(database, steps.held(database, "triple"), "triple.third")["verdict"] == "handed_over"


def test_asked_again_for_want_of_an_answer_it_is_the_same_answer(database: Db) -> None:
    """The COMMIT's answer was lost: the attempt learns that the job is its own, and nothing changes."""
    hold = steps.held(database, "triple")
    first = continue_(database, hold)
    with steps.nothing_changes(database):
        assert continue_(database, hold) == first


def test_asked_again_too_late_it_is_over(database: Db) -> None:
    """Somebody else has the job by then."""
    hold = steps.held(database, "triple")
    later = Hold(hold.job, continue_(database, hold)["fence"])
    assert steps.crash(database, later) == "crashed"
    assert continue_(database, hold)["verdict"] == "repeated"


def test_a_wrong_fence_changes_nothing(database: Db) -> None:
    """G2."""
    hold = steps.held(database, "triple")
    for wrong in steps.wrong_fences(hold):
        with steps.nothing_changes(database):
            assert continue_(database, wrong)["verdict"] == "lost"


def test_the_message_of_a_dead_worker_sends_its_job_to_the_right_queue(database: Db) -> None:
    """It comes back in the first phase's queue, where the job no longer is: a crash of the second phase."""
    steps.sign_on(database, "w1", alive=False)
    hold = gone_on(database)
    queue_of_first = (hold.job, "triple.first", steps.job(database, hold.job)["send"], 99)
    [met] = steps.claim_all(database, [queue_of_first], "w2")
    assert (met["verdict"], met["holder"], met["fence"]) == ("running", "w1", hold.fence)
    assert steps.take_over(database, hold) == "continued"
    row, waits = steps.job(database, hold.job), steps.waiting(database, hold.job)
    assert (row["status"], row["phase"], row["crashes"], row["message_phase_id"]) == ("pending", "second", 1, None)
    assert waits is not None and waits["sent_at"] is None
    assert steps.outcomes(database, hold.job) == ["succeeded", "crashed"]
    [again] = steps.claim_all(database, [queue_of_first], "w2")
    assert again["verdict"] == "other_phase"


def test_a_living_worker_keeps_the_job_that_it_continues(database: Db) -> None:
    """Only its connection to RabbitMQ was lost."""
    steps.sign_on(database, "w1")
    hold = gone_on(database)
    with steps.nothing_changes(database):
        assert steps.take_over(database, hold) == "held"


def test_an_attempt_whose_beginning_nobody_heard_of_is_given_up_at_no_cost(database: Db) -> None:
    """The phase's own transaction committed, the answer was lost: nobody works on the continued job."""
    number = steps.sign_on(database, "w1")
    mine, other = steps.held(database, "triple"), gone_on(database, "w2")
    continue_(database, mine)
    statement = (
        CONTINUED.text.replace(":jobs", "%(jobs)s").replace(":fences", "%(fences)s").replace(":worker", "%(no)s")
    )
    values = {"jobs": [mine.job, other.job], "fences": [1, 1], "no": number}
    for row in database.execute(statement, values).fetchall():
        steps.snooze(database, Hold(row["id"], row["fence"]), reason="lost_connection")
    row = steps.job(database, mine.job)
    assert (row["status"], row["phase"], row["attempts"], row["crashes"]) == ("pending", "second", 0, 0)
    assert steps.outcomes(database, mine.job) == ["succeeded", "snoozed"]
    assert steps.job(database, other.job)["status"] == "running"


def test_the_books_count_its_message_where_it_is(database: Db) -> None:
    """Reconciliation compares RabbitMQ's queues with the jobs whose messages they hold."""
    gone_on(database)
    steps.held(database, "triple")
    for queue in ("triple.first", "triple.second"):
        job = steps.submit(database, "triple")
        database.execute(
            "UPDATE pipeline.outbox SET sent_at = now() - interval '1 minute', phase_id = "
            "(SELECT id FROM pipeline.phases WHERE queue = %s) WHERE job_id = %s",
            (queue, job),
        )
    books = {row["queue"]: row["running"] for row in steps.rows(database, EXPECTED, 5)}
    assert books == {"triple.first": 2, "triple.second": 0}


def test_whether_it_runs_isolated_is_what_the_database_says(database: Db) -> None:
    """The chain in force decides, not the worker's code: a crash of a thread counts, that of a child does not."""
    database.execute("UPDATE pipeline.phases SET isolated = true WHERE workflow = 'triple'")
    hold = steps.held(database, "triple")
    answer = continue_(database, hold)
    assert (answer["verdict"], answer["isolated"]) == ("continued", True)
    assert steps.job(database, hold.job)["isolated"]
    assert continue_(database, hold) == answer
