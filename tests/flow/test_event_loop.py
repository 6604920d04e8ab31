"""``async def`` phases: many at once on one event loop, with everything that threads have."""

from __future__ import annotations

import time

import pytest

from pipeline import cancel, submit, submit_many
from tests.place import ISOLATED, Place

pytestmark = pytest.mark.usefixtures("with_steps")


def test_async_phases_run_and_are_carried_through_with_one_message(place: Place) -> None:
    """Rule 9, as in threads: the send number counts the messages."""
    place.worker(threads=2)
    jobs = submit_many(None, "swift", [{}] * 20)
    for row in place.finished(*jobs):
        assert (row["status"], row["send"], row["fence"]) == ("succeeded", 2, 3)
    assert place.count("SELECT count(*) FROM ledger") == 60


def test_many_wait_at_once_beside_one_thread(place: Place) -> None:
    """A hundred jobs that each wait for the others would never end one after another."""
    place.worker(threads=1)
    jobs = submit_many(None, "lithe", [{"do": "wait", "seconds": 1}] * 100)
    place.finished(*jobs)
    assert place.row("SELECT max(started_at) < min(finished_at) AS at_once FROM pipeline.attempts") == {"at_once": True}


def test_phases_of_each_kind_follow_one_another(place: Place) -> None:
    """A message carries a job only between phases of one kind; between the others it goes through the gate."""
    place.worker(threads=2, PIPELINE_WORKFLOWS=ISOLATED)
    [row] = place.finished(submit(None, "mixed"))
    assert (row["status"], row["send"]) == ("succeeded", 5)
    assert place.count("SELECT count(*) FROM ledger") == 4


def test_a_job_reads_keeps_reports_and_asks_for_permits_by_awaiting(place: Place) -> None:
    place.worker(threads=1)
    [row] = place.finished(submit(None, "lithe", {"do": "services"}))
    assert row["status"] == "succeeded"
    assert place.count("SELECT count(*) FROM ledger") == 2


def test_a_forgotten_await_fails_the_job_at_once_and_says_so(place: Place) -> None:
    """It would have done nothing, in silence."""
    place.worker(threads=1)
    [row] = place.finished(submit(None, "lithe", {"do": "forgotten"}))
    assert (row["status"], row["fence"]) == ("failed", 1)
    assert "job.keep(…) was called and not awaited" in row["error_message"]
    assert place.count("SELECT count(*) FROM ledger") == 0


def test_an_async_write_commits_with_the_job(place: Place) -> None:
    place.worker(threads=1)
    jobs = submit_many(None, "lithe", [{"do": "async_write"}] * 20)
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
    assert place.count("SELECT count(*) FROM ledger") == 20


def test_errors_are_retried_and_counted_as_in_a_thread(place: Place) -> None:
    """G6, and Dramatiq's Retries middleware: also what would end an event loop."""
    place.worker(threads=1)
    bad, flaky, fatal = (submit(None, "lithe", {"do": what}) for what in ("fail", "flaky", "exit"))
    rows = {row["id"]: row for row in place.finished(bad, flaky, fatal)}
    assert (rows[bad]["status"], rows[bad]["attempts"]) == ("failed", 3)
    assert (rows[flaky]["status"], rows[flaky]["attempts"]) == ("succeeded", 1)
    assert (rows[fatal]["status"], rows[fatal]["crashes"]) == ("failed", 0)
    assert "SystemExit" in rows[fatal]["error_message"]
    place.until(lambda: place.depth("lithe.act.XQ") == 2, 10, "the dead letters")


def test_a_time_limit_ends_a_coroutine_and_it_is_tried_again(place: Place) -> None:
    """G8. The limit is 4 s."""
    place.worker(threads=1)
    job = submit(None, "lithe", {"do": "wait", "seconds": 60})
    place.until(lambda: place.attempts(job), 20, "the first attempt to end")
    first = place.attempts(job)[0]
    assert first["outcome"] == "retried"
    assert "time limit of 4 s" in first["error"]
    cancel(None, job)


def test_a_cancelled_job_keeps_no_effect(place: Place) -> None:
    """G5: two hundred at once, told by the heartbeat."""
    place.worker(threads=1)
    jobs = submit_many(None, "swift", [{"seconds": 30}] * 200)
    place.until(lambda: len(place.executions()) == 200, 30, "all of them to begin")
    for job in jobs:
        cancel(None, job)
    place.until(lambda: place.depth("swift.first") == 0, 30, "the acknowledgements")
    assert place.count("SELECT count(*) FROM ledger") == 0
    # The places are free again.
    place.finished(submit(None, "swift"))


def test_a_coroutine_that_swallows_its_cancellation_is_settled_without_it(place: Place) -> None:
    """Its job succeeds in another attempt while the first still sleeps; it is shown, and nothing of it counts."""
    place.worker(threads=1)
    [row] = place.finished(submit(None, "lithe", {"do": "swallow"}))
    assert (row["status"], row["fence"], row["crashes"]) == ("succeeded", 2, 0)
    assert "a coroutine did not end when it was cancelled" in place.logs()
    place.until(lambda: place.count("SELECT max(stuck) FROM pipeline.workers") == 1, 10, "the heartbeat to show it")


def test_a_coroutine_that_blocks_the_loop_is_named_and_left_alone(place: Place) -> None:
    """G8: its job is settled, the others are released at no cost, and another loop takes over."""
    place.worker(threads=1)
    others = submit_many(None, "swift", [{"seconds": 1}] * 20)
    place.until(lambda: len(place.executions()) == 20, 20, "the others to begin")
    job = submit(None, "lithe", {"do": "block"})
    rows = {row["id"]: row for row in place.finished(job, *others)}
    assert {row["status"] for row in rows.values()} == {"succeeded"}
    assert (rows[job]["fence"], rows[job]["crashes"]) == (2, 0)
    outcomes = place.rows("SELECT outcome, count(*) AS n FROM pipeline.attempts GROUP BY 1 ORDER BY 1")
    assert {row["outcome"] for row in outcomes} <= {"succeeded", "released", "retried"}
    assert place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'retried'") == 1
    assert "a coroutine blocks the event loop" in place.logs()
    assert f"job={job}" in place.logs()


@pytest.mark.parametrize("seconds", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_a_loop_that_is_blocked_for_a_while_costs_nobody_anything(place: Place, seconds: int) -> None:
    """The others' time limit of 4 s does not run meanwhile."""
    place.worker(threads=1)
    others = submit_many(None, "lithe", [{"seconds": 1}] * 10)
    blocking = submit(None, "swift", {"block": seconds})
    rows = place.finished(blocking, *others, timeout=60 + 3 * seconds)
    assert {(row["status"], row["attempts"], row["crashes"]) for row in rows} == {("succeeded", 0, 0)}
    assert "a coroutine blocks the event loop" in place.logs()


def test_a_killed_process_costs_its_coroutines_one_crash_each(place: Place) -> None:
    """G7, G3: all of them run elsewhere, isolated now, each effect once."""
    place.worker(threads=4)
    jobs = submit_many(None, "swift", [{"seconds": 60, "once": True}] * 20)
    place.until(lambda: len(place.executions()) >= 20, 20, "all of them to begin")
    place.worker(threads=4)
    place.kill_holder(jobs[0])
    assert {row["crashes"] for row in place.finished(*jobs, timeout=90)} == {0}
    assert place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'crashed'") == 20
    assert place.count("SELECT count(*) FROM ledger") == 60


def test_one_that_kills_its_process_runs_isolated_afterwards(place: Place) -> None:
    place.worker(threads=2, processes=1)
    job = submit(None, "lithe", {"do": "die"})
    place.until(lambda: place.job(job)["fence"] == 1 and not place.booted(), 20, "the process to die")
    place.worker(threads=2)
    [row] = place.finished(job)
    assert (row["status"], row["crashes"]) == ("succeeded", 1)


def test_a_stop_releases_coroutines_at_no_cost(place: Place) -> None:
    """A deploy: they run again elsewhere, and nothing is counted."""
    worker = place.worker(threads=1)
    jobs = submit_many(None, "swift", [{"seconds": 60}] * 50)
    place.until(lambda: len(place.executions()) == 50, 20, "all of them to begin")
    began = time.monotonic()
    worker.terminate()
    worker.wait(30)
    assert time.monotonic() - began < 20
    rows = place.rows("SELECT status, attempts, crashes FROM pipeline.jobs WHERE id = ANY (%s)", jobs)
    assert {(row["status"], row["attempts"], row["crashes"]) for row in rows} == {("pending", 0, 0)}


def test_what_a_phase_logs_names_its_job(place: Place) -> None:
    """Each coroutine has a context of its own."""
    place.worker(threads=1)
    jobs = submit_many(None, "lithe", [{"do": "log"}] * 3)
    place.finished(*jobs)
    lines = [line for line in place.logs().splitlines() if "from inside" in line]
    assert len(lines) == 3
    assert all(any(f"job={job}" in line for line in lines) for job in jobs)
