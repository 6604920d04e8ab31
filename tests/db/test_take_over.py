"""pipeline.take_over: a token meets its job in dead hands."""

from __future__ import annotations

from tests.db import clock, steps
from tests.db.steps import Db, Hold


def test_a_dead_holders_job_continues_under_a_new_fence(database: Db) -> None:
    """Same token, one crash counted, isolated from now on; the old attempt is in the history."""
    steps.sign_on(database, "w1", alive=False)
    hold = steps.held(database)
    assert steps.take_over(database, hold) == "claimed"
    row = steps.job(database, hold.job)
    assert (row["status"], row["locked_by"], row["fence"], row["send"]) == ("running", "w2", hold.fence + 1, 1)
    assert (row["crashes"], row["attempts"], row["isolated"]) == (1, 0, True)
    [note] = steps.history(database, hold.job)
    assert (note["outcome"], note["worker"], note["fence"]) == ("crashed", "w1", hold.fence)


def test_the_dead_holder_can_write_nothing_afterwards(database: Db) -> None:
    """G2: were it alive after all."""
    hold = steps.held(database)
    steps.take_over(database, hold)
    with steps.nothing_changes(database):
        assert steps.complete(database, hold)["verdict"] == "lost"
        for step in (steps.retry, steps.fail, steps.snooze, steps.crash):
            assert step(database, hold) == "crashed"


def test_a_living_holder_keeps_its_job(database: Db) -> None:
    """Its lock is held and its heartbeat fresh: nothing is counted."""
    steps.sign_on(database, "w1")
    hold = steps.held(database)
    with steps.nothing_changes(database):
        assert steps.take_over(database, hold) == "held"


def test_a_holder_that_hangs_loses_its_job(database: Db) -> None:
    """The lock is held, but the heartbeat is older than the phase allows."""
    steps.sign_on(database, "w1")
    hold = steps.held(database)
    clock.let_pass(database, 301)
    assert steps.take_over(database, hold) == "claimed"


def test_what_has_changed_since_the_look_is_looked_at_again(database: Db) -> None:
    """Another fence, holder, send number or status."""
    hold = steps.held(database)
    ended = steps.held(database)
    steps.complete(database, ended)
    wrong = [*steps.wrong_fences(hold), Hold(hold.job, hold.fence, "w9"), ended]
    with steps.nothing_changes(database):
        assert {steps.take_over(database, one) for one in wrong} == {"changed"}
        assert steps.take_over(database, hold, send=99) == "changed"


def test_a_takeover_repeated_after_an_unknown_commit_is_found_by_the_claim(database: Db) -> None:
    """The second call sees that the row changed; the look that follows answers 'claimed' to the same delivery."""
    hold, delivery = steps.held(database), 7
    steps.take_over(database, hold, delivery=delivery)
    with steps.nothing_changes(database):
        assert steps.take_over(database, hold, delivery=delivery) == "changed"
        again = steps.claim(database, hold.job, "w2", delivery=delivery)
    assert (again["verdict"], again["fence"]) == ("claimed", hold.fence + 1)


def test_the_third_dead_worker_makes_a_poison_pill(database: Db) -> None:
    """After the first two takeovers the job continues; an isolated attempt's dead worker does not count."""
    hold = steps.held(database)
    for fence in (1, 2):
        database.execute("UPDATE pipeline.jobs SET isolated = false")
        assert steps.take_over(database, Hold(hold.job, fence, f"w{fence}"), worker=f"w{fence + 1}") == "claimed"
    assert steps.take_over(database, Hold(hold.job, 3, "w3"), worker="w4") == "claimed"
    assert steps.job(database, hold.job)["crashes"] == 2
    database.execute("UPDATE pipeline.jobs SET isolated = false")
    assert steps.take_over(database, Hold(hold.job, 4, "w4"), worker="w5") == "poisoned"
    row = steps.job(database, hold.job)
    assert (row["status"], row["crashes"], row["locked_by"]) == ("failed", 3, None)
    assert row["error_message"].startswith("poison pill: 3 workers died")


def test_a_processor_moves_with_the_takeover(database: Db) -> None:
    """The pool is as full as before."""
    hold = steps.held(database, "pooled")
    steps.take_over(database, hold)
    assert steps.processor(database, hold.job) == 1


def test_a_worker_takes_over_from_itself_at_no_cost(database: Db) -> None:
    """The answer to its own take-over was lost: it is named as the holder, alive, and no thread of it runs the job."""
    steps.sign_on(database, "w1")
    hold = steps.held(database)
    assert steps.take_over(database, hold, worker="w2") == "held"
    assert steps.take_over(database, hold, worker="w1") == "claimed"
    row = steps.job(database, hold.job)
    assert (row["crashes"], row["fence"]) == (0, hold.fence + 1)
