"""Hooks in memory: submitted by the ends of jobs, by the same rules as on servers."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Engine

from pipeline import Workflow, cancel
from pipeline.testing import MemoryRun, Run, in_memory
from tests.testing.hooked import again, hooked, told

# How it ends, and what makes it do so.
PLANS = ["ok", "much", "fail", "try", "sleep", "bear"]


def heard(run: Run) -> list[tuple[str, str]]:
    """What the hooks' jobs were told, without ids and moments; the whole is compared by its words."""
    said = []
    for job in run.jobs(told):
        body = {**job.body}
        assert job.status == "succeeded" and body.pop("ended_at").endswith("Z")
        of = run.job(UUID(body.pop("job")))
        assert of.status == body["state"] or body["state"] == "failed"
        # An expiry names its moment.
        body["error"] = body["error"] and body["error"][:32]
        name = of.body.get("name", of.body["does"])
        said.append((name, json.dumps(body, sort_keys=True)[:200]))
    return sorted(said)


def ends(run: Run) -> tuple[list[str], list[tuple[str, str]], list[Any]]:
    """Success, failure at once and by its budget, a replay, a cancel that reaches children, an expiry, a large result."""
    jobs = [run.submit(hooked, {"does": does}) for does in PLANS]
    late = run.submit(
        hooked, {"does": "ok", "name": "late"}, due=datetime.now(UTC) + timedelta(hours=2), expires=timedelta(minutes=5)
    )
    run.drain()
    jobs[PLANS.index("fail")].replay()
    run.drain()
    assert jobs[PLANS.index("bear")].cancel("enough") and not jobs[0].cancel()
    run.advance(minutes=6)
    run.drain()
    jobs[PLANS.index("sleep")].cancel("too late")
    run.advance(hours=2)
    run.drain()
    return [job.status for job in (late, *jobs)], heard(run), sorted(job.result for job in run.jobs(again))


def crash(run: Run) -> list[object]:
    """One crash is enough for its workflow."""
    job = run.submit(hooked, {"does": "ok"})
    run.kill_at("hooked.act")
    run.drain()
    [hook] = run.jobs(told)
    return [job.status, hook.body["event"], hook.body["error"][:11]]


def test_the_same_hooks_in_memory_and_on_servers(pipeline_servers: Run) -> None:
    """What they are told, and how often."""
    real = ends(pipeline_servers)
    with in_memory() as run:
        assert ends(run) == real
    names = Counter(name for name, _ in real[1])
    assert names == {
        "ok": 2,
        "much": 2,
        "another": 2,
        "fail": 2,
        "try": 1,
        "sleep": 1,
        "bear": 1,
        "a child": 1,
        "late": 1,
    }


def test_the_same_hook_of_a_poison_pill(pipeline_servers: Run) -> None:
    real = crash(pipeline_servers)
    with in_memory() as run:
        assert crash(run) == real == ["failed", "failure", "poison pill"]


def test_a_hooks_job_exists_once_the_transaction_that_ends_the_other_commits(run: MemoryRun, engine: Engine) -> None:
    job = run.submit(hooked, {"does": "sleep"})
    with engine.connect() as db:
        assert cancel(db, job.id)
        assert not run.jobs(told)
        db.commit()
    run.drain()
    assert [one.body["event"] for one in run.jobs(told)] == ["cancel"]


def test_a_hook_whose_workflow_nobody_could_run_is_left_out(run: MemoryRun, workflow: Workflow[Any, Any]) -> None:
    """It is no error of the job."""
    workflow.on_success(Workflow("hooked-nobody"))
    workflow.phase("only")(lambda job: None)
    job = run.submit(workflow)
    run.drain()
    assert job.status == "succeeded" and len(run.jobs()) == 1
