"""Events, children, times and branches under the kit: the run in memory does what the servers do."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from pipeline import Ends, Job, JobCancelled, Workflow
from pipeline.testing import JobRecord, MemoryRun, Run, in_memory
from pipeline.testing.memory.rows import Refused
from pipeline.testing.memory.sqlite import sqlite
from tests.testing.families import parent
from tests.testing.test_same_on_servers import seen
from tests.wait_workflows import audit, crowd, patient, rounds

IDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def told(job: JobRecord) -> str:
    """Without ids, which are another run's."""
    return IDS.sub("…", json.dumps(seen(job), sort_keys=True, default=str))


def all_of(run: Run) -> list[str]:
    return sorted(told(job) for job in run.jobs())


def audits(run: Run) -> list[object]:
    """The audit through all its ways: asked and approved, told before, out of time, not asked, cancelled."""
    answers: list[object] = []
    body = {"customer": "c-17", "url": "http://example.org/"}
    jobs = [run.submit(audit, {**body, "pages": 5, "bad": bad}) for bad in (2, 1, 1, 0, 1)]
    approved, early, late, _, cancelled = jobs
    answers.append(early.signal("approved", {"by": "Eve"}))
    run.drain()
    answers += [(job.status, job.wait_reason) for job in jobs]
    answers += [approved.signal("refused"), approved.signal("approved", {"by": "Ada"}), cancelled.cancel()]
    answers += [approved.wait_reason, cancelled.signal("approved")]
    run.drain()
    run.advance(days=7, minutes=1)
    answers.append(late.signal("approved", {"by": "too late"}))
    run.drain()
    answers += [(job.status, job.result) for job in jobs]
    with run.engine.connect() as db:  # type: ignore[union-attr]  # both runs have one
        rows = db.execute(text("SELECT job_id, fence FROM ledger")).all()
    written = {str(row.job_id): row.fence for row in rows}
    answers.append([written.get(str(job.id)) for job in jobs])
    return [*answers, *all_of(run)]


def families(run: Run) -> list[object]:
    """Every policy, grandchildren, a cancel; children that sleep while others end."""
    bodies: list[dict[str, Any]] = [
        {"children": ["ok", "sleep", "fail", "ok"]},
        {"children": ["sleep", "fail later", "sleep"], "policy": "all"},
        {"children": ["fail", "sleep", "ok later"], "policy": "any"},
        {"children": ["fail", "fail"], "policy": "any"},
        {"children": []},
        {"children": ["sleep", "fail"], "again": True},
        {"children": ["sleep"], "again": True},
    ]
    jobs = [run.submit(parent, body) for body in bodies]
    run.drain()
    answers: list[object] = [(job.status, job.phase, job.wait_reason) for job in jobs]
    answers.append(jobs[-1].cancel("enough"))
    run.advance(minutes=2)
    run.drain()
    answers += [(job.status, job.phase, job.wait_reason) for job in jobs]
    run.advance(hours=2)
    run.drain()
    assert {job.status for job in run.jobs()} <= {"succeeded", "failed", "cancelled"}
    return [*answers, *(job.result for job in jobs), *all_of(run)]


def times(run: Run) -> list[object]:
    """Sleeps in every kind of phase, times between phases, a wait that is over, and a loop through phases."""
    jobs = [run.submit(patient, {"seconds": 600}), run.submit(rounds, {"rounds": 3})]
    answers: list[object] = []
    for _ in range(5):
        run.drain()
        answers.append([(job.phase, job.status, job.wait_reason) for job in jobs])
        run.advance()
    run.drain()
    return [*answers, *(job.result for job in jobs), *all_of(run)]


def crowds(run: Run) -> list[object]:
    """A hundred children of an async phase; one of them is replayed afterwards, and wakes nobody."""
    job = run.submit(crowd, {"children": 100})
    run.kill_at("crowd.gather")
    run.drain()
    failed = [child for child in run.jobs("page-audit") if child.status == "failed"]
    answer = failed[0].replay()
    run.drain()
    return [answer, len(failed), job.result, job.outcomes, told(job)]


def second_thoughts(run: Run) -> list[object]:
    """Jobs that are cancelled while they wait, and replayed: for a person, too late for one, for children."""
    body = {"customer": "c-17", "url": "http://example.org/", "pages": 3, "bad": 1}
    asked, late = run.submit(audit, body), run.submit(audit, body)
    mother = run.submit(parent, {"children": ["ok", "sleep"]})
    run.drain()
    answers: list[object] = [job.cancel() for job in (asked, late, mother)]
    answers += [asked.replay(), mother.replay()]
    run.drain()
    answers += [(job.status, job.phase, job.wait_reason) for job in (asked, mother)]
    answers.append(asked.signal("approved", {"by": "Ada"}))
    run.drain()
    run.advance(days=7, minutes=1)
    answers.append(late.replay())
    run.drain()
    assert (asked.result.approved_by, late.result.approved_by) == ("Ada", None)
    return [*answers, *((job.status, job.result) for job in (asked, late, mother)), *all_of(run)]


STORIES = [audits, families, times, crowds, second_thoughts]


@pytest.fixture(autouse=True)
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_RECORD", str(tmp_path / "record"))


def with_ledger(run: Run) -> Run:
    with run.engine.begin() as db:  # type: ignore[union-attr]  # both runs have one
        db.execute(text("CREATE TABLE IF NOT EXISTS ledger (job_id text, phase text, fence bigint)"))
    return run


@pytest.mark.timeout(180)
@pytest.mark.parametrize("story", STORIES)
def test_the_same_in_memory_and_on_servers(story: Any, pipeline_servers: Run) -> None:
    """Answers, statuses, history, results, errors and reasons to wait, of parents and children."""
    real = story(with_ledger(pipeline_servers))
    with in_memory(sqlite()) as run:
        assert story(with_ledger(run)) == real


def test_all_of_it_takes_less_than_a_second_in_memory() -> None:
    began = time.process_time()
    for story in STORIES:
        with in_memory(sqlite()) as run:
            assert story(with_ledger(run))
    assert time.process_time() - began < 1


def test_a_handle_waits_for_children_and_time_in_vain(run: MemoryRun) -> None:
    """As a caller of code under test sees it."""
    job = parent.submit({"children": ["ok", "sleep"]})
    assert job.status().phase == "bear"
    run.drain()
    assert job.status().wait_reason == "children"
    assert job.cancel()
    with pytest.raises(JobCancelled):
        job.result(timeout=1)
    assert [child.status for child in run.jobs("kit-child")] == ["succeeded", "cancelled"]


def test_children_of_children_end_somewhere(run: MemoryRun, workflow: Workflow[Any, Any]) -> None:
    @workflow.phase(max_attempts=1)
    def nest(job: Job) -> Any:
        return job.spawn(workflow, [{}])

    @workflow.phase
    def unnest(job: Job, nest: Ends[Any]) -> int:
        return len(nest)

    run.submit(workflow)
    run.drain()
    assert len(run.jobs()) == 11
    assert Refused.__name__ in str(run.jobs()[-1].error) and "10 levels deep" in str(run.jobs()[-1].error)
