"""Hooks are submitted by the transition that ends a job, once; what is around attempts is around all of them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from datetime import UTC

import pytest

from pipeline import JobFailed
from tests.hook_workflows import watched
from tests.place import Place

MODULE = "tests.hook_workflows"


def told(place: Place) -> list[dict[str, object]]:
    return [
        row["body"]
        for row in place.rows("SELECT body FROM pipeline.jobs WHERE workflow = 'tell-the-owner' ORDER BY id")
    ]


def test_the_end_of_a_job_submits_what_its_workflow_wants(place: Place) -> None:
    """With what its own job was told; again when it is replayed and fails once more."""
    place.worker(PIPELINE_WORKFLOWS=MODULE)
    good, bad = watched.submit({"n": 1}), watched.submit({"fail": "on-the-loop"})
    assert good.result(timeout=30) == ["in-a-child"]
    with pytest.raises(JobFailed, match="it cannot be done"):
        bad.result(timeout=30)
    assert bad.replay()
    place.until(lambda: len(told(place)) == 3, 20, "the hooks' jobs")
    place.finished(*(row["id"] for row in place.rows("SELECT id FROM pipeline.jobs")))
    by_state = Counter(str(body["state"]) for body in told(place))
    assert by_state == {"succeeded": 1, "failed": 2}
    [success] = [body for body in told(place) if body["state"] == "succeeded"]
    assert success == {
        "job": str(good),
        "workflow": "watched",
        "phase": "in-a-child",
        "state": "succeeded",
        "error": None,
        "body": {"n": 1},
        "result": ["in-a-child"],
        "team": "sales",
        "ended_at": f"{place.job(good.id)['completed_at'].astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
    }
    assert {str(body["error"])[:28] for body in told(place)} == {"None", "Permanent: it cannot be done"}
    assert place.count("SELECT count(*) FROM ledger") == 3
    [trace] = place.rows("SELECT count(DISTINCT trace_id) AS n FROM pipeline.jobs")
    assert trace["n"] == 2, "a hook's job joins the trace of the job that ended"


def test_around_is_around_every_kind_of_attempt(place: Place) -> None:
    place.worker(threads=1, PIPELINE_WORKFLOWS=MODULE)
    job = watched.submit()
    job.result(timeout=30)
    assert place.job(job.id)["result"] == {
        "in-a-thread": ["in-a-thread"],
        "on-the-loop": ["on-the-loop"],
        "in-a-child": ["in-a-child"],
    }


def test_each_hook_comes_once_through_kills_and_cancels(place: Place) -> None:
    """Sixty jobs that succeed, fail or are cancelled while their workers are killed."""
    place.worker(processes=2, PIPELINE_WORKFLOWS=MODULE)
    jobs = watched.submit_many([{"seconds": 0.02, **({"fail": "in-a-child"} if n % 3 == 1 else {})} for n in range(60)])
    for round_ in range(3):
        place.until(lambda: place.count("SELECT count(*) FROM pipeline.attempts") >= 20 * (round_ + 1), 60, "progress")  # noqa: B023  within the round
        for job in jobs[2 + round_ :: 9]:
            job.cancel()
        os.kill(place.until(place.booted, 30, "a worker that has booted")[0], signal.SIGKILL)
        place.worker(wait=False, PIPELINE_WORKFLOWS=MODULE)
    rows = place.finished(*(job.id for job in jobs), timeout=90)
    ended = {str(row["id"]): row["status"] for row in rows}
    place.until(lambda: len(told(place)) >= 60, 30, "the hooks' jobs")
    assert sorted((str(body["job"]), body["state"]) for body in told(place)) == sorted(ended.items())
    print(f"\n60 jobs, 3 kills: {Counter(ended.values())}")
    assert set(ended.values()) == {"succeeded", "failed", "cancelled"}
