"""job.step: what a step returned is kept, and no later attempt at the phase calls it again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from pipeline import cancel, submit, submit_many
from pipeline.journey.submit import replay
from tests.place import ISOLATED, Place
from tests.step_notes import calls

pytestmark = pytest.mark.usefixtures("with_steps")

CALLS = """SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
    WHERE d.datname = current_database() AND query LIKE '%%pipeline.keep_steps(%%' AND toplevel"""
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


def kept(place: Place, job: UUID) -> dict[str, str]:
    rows = place.rows("SELECT name, value FROM pipeline.steps WHERE job_id = %s", job)
    return {row["name"]: row["value"] for row in rows}


def began(place: Place, job: UUID, times: int = 1) -> Callable[[], bool]:
    return lambda: calls(place, job)["slow"] >= times


def go_on(place: Place) -> None:
    (place.folder / "go").touch()


@pytest.mark.parametrize(
    ("do", "outcomes"),
    [("fail", ["retried", "succeeded"]), ("snooze", ["snoozed", "succeeded"]), ("die", ["crashed", "succeeded"])],
)
def test_a_later_attempt_does_not_repeat_a_step(place: Place, do: str, outcomes: list[str]) -> None:
    """A retry, a wait, and a crash, after which the job runs in a child of its own."""
    place.worker(threads=1)
    place.worker(threads=1)
    job = submit(None, "faltered", {"do": do})
    [row] = place.finished(job)
    assert row["status"] == "succeeded"
    assert [one["outcome"] for one in place.attempts(job)] == outcomes
    assert calls(place, job) == {"first": 1, "second": 1}
    assert (row["result"]["act"]["first"]["fence"], row["result"]["act"]["second"]["fence"]) == (1, 2)


def test_a_job_that_is_released_at_shutdown_has_its_steps_elsewhere(place: Place) -> None:
    worker = place.worker(threads=1)
    job = submit(None, "faltered", {"do": "wait"})
    place.until(lambda: "asked" in kept(place, job), 20, "the first steps")
    os.killpg(worker.pid, signal.SIGTERM)
    place.until(lambda: place.attempts(job), 20, "the release")
    place.worker(threads=1)
    [row] = place.finished(job)
    assert [one["outcome"] for one in place.attempts(job)] == ["released", "succeeded"]
    assert (row["status"], calls(place, job)) == ("succeeded", {"first": 1, "second": 1})


@pytest.mark.parametrize("workflow", ["stepped", "strolled", "staged"])
def test_ten_steps_in_a_thread_on_the_event_loop_and_in_a_child(place: Place, workflow: str) -> None:
    place.worker(threads=2, PIPELINE_WORKFLOWS=ISOLATED)
    jobs = submit_many(None, workflow, [{}] * 5)
    for row in place.finished(*jobs):
        assert row["status"] == "succeeded"
        assert set(calls(place, row["id"]).values()) == {1}
        assert len(kept(place, row["id"])) == 10


def test_async_steps_go_together_and_each_runs_once(place: Place) -> None:
    """Twenty at once, one of them wanted five times, one in a thread, one as a task."""
    place.worker(threads=1)
    job = submit(None, "gathered")
    [row] = place.finished(job)
    assert (row["status"], row["error_message"]) == ("succeeded", None)
    assert row["result"]["act"] == {"pages": 20, "once": 1, "blocked": "blocked", "task": "task"}
    assert set(calls(place, job).values()) == {1}


def test_a_forgotten_await_of_a_step_fails_the_job(place: Place) -> None:
    place.worker(threads=1)
    [row] = place.finished(submit(None, "gathered", {"forget": True}))
    assert row["status"] == "failed"
    assert "job.step(…) was called and not awaited" in row["error_message"]


@pytest.mark.parametrize("workflow", ["held", "held-loop", "held-child"])
def test_a_job_that_is_cancelled_during_a_step_keeps_nothing(place: Place, workflow: str) -> None:
    """G5. The step ends after the cancel."""
    place.worker(threads=1, PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, workflow)
    place.until(began(place, job), 20, "the step")
    assert cancel(None, job)
    go_on(place)
    place.until(lambda: place.depth(f"{workflow}.act") == 0, 20, "the acknowledgement")
    assert kept(place, job) == {}


@pytest.mark.parametrize("workflow", ["held", "held-loop", "held-child"])
def test_a_step_is_not_repeated_while_somebody_locks_the_job(place: Place, workflow: str) -> None:
    """Its result waits, and is kept when the row is free."""
    place.worker(threads=1, PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, workflow)
    place.until(began(place, job), 20, "the step")
    with psycopg.connect(place.database_url) as other:
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job,))
        go_on(place)
        place.until(lambda: tried(place) >= 3, 20, "it to be asked again")
        assert kept(place, job) == {}
    [row] = place.finished(job)
    assert (row["status"], row["fence"]) == ("succeeded", 1)
    assert calls(place, job) == {"slow": 1}


def tried(place: Place) -> int:
    place.db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    return place.count(CALLS)


def test_a_replayed_job_has_its_steps(place: Place) -> None:
    """It failed between two of them; that is what they are for."""
    place.worker(threads=1)
    place.db.execute("UPDATE pipeline.phases SET max_attempts = 1 WHERE workflow = 'faltered'")
    job = submit(None, "faltered", {"do": "fail"})
    assert place.finished(job)[0]["status"] == "failed"
    assert replay(None, job)
    assert place.finished(job)[0]["status"] == "succeeded"
    assert calls(place, job) == {"first": 1, "second": 1}


def test_steps_of_many_jobs_share_statements_and_commits(place: Place) -> None:
    """With default settings: at most half of one for each step, in threads and on the event loop alike."""
    place.worker(threads=8)
    place.db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    for workflow in ("quick-steps", "quick-steps-loop"):
        place.finished(submit(None, workflow))
        calls_before, commits_before = place.count(CALLS), place.count(COMMITS)
        jobs = submit_many(None, workflow, [{}] * 300)
        place.finished(*jobs, timeout=60)
        statements, commits = place.count(CALLS) - calls_before, place.count(COMMITS) - commits_before
        steps = place.count("SELECT count(*) FROM pipeline.steps WHERE job_id = ANY (%s)", jobs)
        assert steps == 3000
        print(
            f"\n{workflow}: {statements / steps:.3f} statements a step that keep; {commits / steps:.3f} commits a step"
        )
        print("of everybody in this database, also of this test's own looks")
        assert 2 * statements / steps <= 0.5


def test_nobody_reads_what_cannot_be_there(place: Place) -> None:
    """A job's first attempt, and a phase that it continued to in the same worker."""
    place.worker(threads=1)
    place.db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    place.finished(submit(None, "stepped"))
    read = CALLS.replace("pipeline.keep_steps(", "FROM pipeline.steps WHERE job_id%%phase")
    before = place.count(read)
    place.finished(*submit_many(None, "stepped", [{}] * 5))
    assert place.count(read) == before
    place.finished(submit(None, "faltered", {"do": "fail"}))
    assert place.count(read) == before + 1


def test_what_is_left_of_a_job_that_went_is_found_and_removed(place: Place) -> None:
    """pipeline verify."""
    place.db.execute(
        "INSERT INTO pipeline.steps (job_id, fence, phase, name, value) VALUES (gen_random_uuid(), 1, 'act', 'fetch', '1')"
    )
    [found] = place.rows("SELECT problem, detail FROM pipeline.verify(true)")
    assert found == {"problem": "steps, events or logs without a job", "detail": "1 rows"}
    assert place.rows("SELECT * FROM pipeline.verify(false)") == []
