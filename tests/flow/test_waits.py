"""Jobs that wait for time, for people and for other jobs, with real workers; nothing is held meanwhile."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import Any

import pytest
from pydantic import HttpUrl

from pipeline import Done, JobCancelled, JobFailed, Permanent
from pipeline import job as job_of
from pipeline.declare.errors import Misuse
from pipeline.declare.waits.branches import next_of
from tests.place import Place
from tests.wait_workflows import Audit, Report, approve, audit, crowd, drowse, look, patient, publish, rounds, wake

MODULE = "tests.wait_workflows"
URL = HttpUrl("http://example.org/")


def waits_for(place: Place, job: Any) -> str | None:
    row = place.row("SELECT waits_for FROM pipeline.outbox WHERE job_id = %s", job.id)
    return row["waits_for"] if row else None


def kill_all(place: Place) -> None:
    for pid in place.pids():
        os.kill(pid, signal.SIGKILL)


def test_the_audit_runs_as_it_is_written_through_kills_in_each_of_its_waits(place: Place) -> None:
    """Crawl, look at every page in parallel, ask a person, publish; the workers die whenever the job waits."""
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    job = audit.submit(Audit(customer="c-17", url=URL, pages=40, bad=2))
    place.until(lambda: (waits_for(place, job) or "").startswith("children:"), 30, "the wait for children")
    kill_all(place)
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    place.until(lambda: waits_for(place, job) == "event:approved", 30, "the wait for a person")
    assert job.status().wait_reason == "event"
    kill_all(place)
    assert job.signal("approved", {"by": "Ada"}) == "delivered"
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    report = job.result(timeout=60)
    assert report.approved_by == "Ada" and len(report.titles) == 40
    assert [title.split(":")[0] for title in report.titles[:2]] == ["failed", "failed"]
    assert report.titles[2:] == [f"Page http://example.org/{n}" for n in range(2, 40)]
    assert place.count("SELECT count(*) FROM ledger WHERE job_id = %s", job.id) == 1
    assert len([one for one in place.executions() if one[0] == str(job.id)]) == 1, "the step was done once"
    assert place.rows("SELECT * FROM pipeline.verify(false)") == []


def test_a_branch_leaves_the_question_out(place: Place) -> None:
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    report = audit.submit(Audit(customer="c-17", url=URL)).result(timeout=30)
    assert report == Report(
        customer="c-17", titles=[f"Page http://example.org/{n}" for n in range(3)], approved_by=None
    )


def test_sleeps_and_times_between_phases_hold_nothing_and_come_once(place: Place) -> None:
    """In a thread, on the event loop and in a child; the event's wait ends with its default."""
    place.worker(threads=1, PIPELINE_WORKFLOWS=MODULE)
    job = patient.submit({"seconds": 0.3})
    assert job.result(timeout=30) == -1
    found = [(one["phase"], one["outcome"]) for one in place.attempts(job.id)]
    slept = [(phase, outcome) for phase in ("rest", "doze", "drowse") for outcome in ("snoozed", "succeeded")]
    assert found == [*slept, ("wake", "succeeded")]
    reasons = [one["wait_reason"] for one in place.attempts(job.id)]
    assert reasons == [None, "sleep", "after", "sleep", None, "sleep", "event"]
    timeline = place.rows("SELECT part, seconds FROM pipeline.timeline(%s)", job.id)
    assert sum(row["seconds"] for row in timeline if row["part"] == "waiting for an event") >= 0.3
    age = place.count(
        "SELECT (1000 * extract(epoch FROM completed_at - created_at))::integer FROM pipeline.jobs WHERE id = %s",
        job.id,
    )
    assert sum(row["seconds"] for row in timeline) == pytest.approx(age / 1000, abs=0.01)


@pytest.mark.parametrize(("policy", "ends"), [("best_effort", [100, 97, 3]), ("any", None)])
def test_an_async_phase_goes_over_the_ends_of_its_children(place: Place, policy: str, ends: list[int] | None) -> None:
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    total, good, failed = crowd.submit({"children": 100, "policy": policy}).result(timeout=60)
    assert total == 100 and (ends is None or [total, good, failed] == ends)
    if policy == "any":
        place.until(
            lambda: place.count("SELECT count(*) FROM pipeline.batches WHERE completed_at IS NULL") == 0,
            30,
            "the other children to be cancelled",
        )


def test_a_job_that_needs_all_of_its_children_fails_with_the_first_that_does(place: Place) -> None:
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    job = crowd.submit({"children": 100, "policy": "all"})
    with pytest.raises(JobFailed, match="did not succeed: Permanent: gone"):
        job.result(timeout=60)


def test_a_cancel_reaches_the_children(place: Place) -> None:
    job = None
    worker = place.worker(PIPELINE_WORKFLOWS=MODULE)
    job = audit.submit(Audit(customer="c-17", url=URL, pages=200))
    place.until(lambda: (waits_for(place, job) or "").startswith("children:"), 30, "the wait for children")
    os.killpg(worker.pid, signal.SIGSTOP)
    assert job.cancel()
    os.killpg(worker.pid, signal.SIGCONT)
    with pytest.raises(JobCancelled):
        job.result(timeout=10)
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL") == 0
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'cancelled' AND batch_id IS NOT NULL") > 0


def test_a_loop_through_phases_ends_where_the_job_says(place: Place) -> None:
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    job = rounds.submit({"rounds": 4})
    assert job.result(timeout=30) == "enough"
    assert [one["phase"] for one in place.attempts(job.id)] == ["around", "decide"] * 4
    assert job_of(job.id).status().phase == "decide"


def test_waiting_after_the_last_phase_is_a_mistake_of_the_programme() -> None:
    with pytest.raises(Misuse, match=r"phase patient.wake is the last of its workflow"):
        next_of(wake.spec, Done(after=timedelta(seconds=1)))
    assert next_of(drowse.spec, Done(after=timedelta(seconds=1.5))) == '{"after":1.5}'


def test_a_phase_is_tested_by_calling_it() -> None:
    """What it returns says what comes next."""
    from pipeline import End, Job

    job = Job(Audit(customer="c", url=URL), workflow="approved-audit", phase="approve")
    assert approve(job, []).next.phase == "publish"  # type: ignore[arg-type, union-attr]  # a list does for Ends
    asked = approve(job, [End(job.id, "failed", "gone")])  # type: ignore[arg-type]
    assert asked.next.event == "approved"  # type: ignore[union-attr]
    assert len(look(job, ["http://example.org/"]).bodies) == 1
    with pytest.raises(Permanent, match="has no result"):
        _ = End(job.id, "failed", "gone").result
    assert publish.spec.kind == "isolated"
