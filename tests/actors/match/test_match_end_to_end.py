"""The match workflow through real workers, real servers and real HTTP to the sandbox."""

from __future__ import annotations

import os
import threading
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text

from actors.match.decide import ProjectSettings
from actors.match.entries import add_entries
from actors.match.projects import cancel_project, create_project, delete_project, progress, start_match
from pipeline.store import database
from sandbox import Sandbox
from sandbox.wikidata_labelled import labelled
from tests.place import Place


@pytest.fixture
def environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = {"PIPELINE_SANDBOX_URL": sandbox.url, "WIKIDATA_RATE": "200", "WIKIDATA_BURST": "20"}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    httpx.delete(f"{sandbox.url}/w/_arrivals")
    return found


def new_project(entries: list[dict[str, Any]], **settings: Any) -> int:
    with database.engine().begin() as connection:
        project = create_project(connection, "people", ProjectSettings(**settings))
        add_entries(connection, project, entries)
    return project


def people(count: int) -> list[dict[str, Any]]:
    known = [{"name": record.name, **record.data} for record in labelled() if record.name]
    return [{**known[n % len(known)], "external_id": str(n)} for n in range(count)]


def match(project: int, **environment: str) -> dict[str, Any]:
    os.environ.update(environment)  # the fixture has set the same names, and takes them back
    with database.engine().begin() as connection:
        return start_match(connection, project)


def ended(place: Place, project: int, timeout: float = 60.0) -> dict[str, Any]:
    place.until(
        lambda: place.count("SELECT count(*) FROM projects WHERE id = %s AND status = 'COMPLETED'", project),
        timeout,
        f"the project to complete; now {place.statuses()}",
    )
    with database.engine().connect() as connection:
        return progress(connection, project)


def test_a_project_is_matched_under_one_limit_and_completes(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """Over two processes: no second above limit and bucket, waits charged to nobody, one callback."""
    environment |= {"WIKIDATA_RATE": "40", "WIKIDATA_BURST": "8"}
    project = new_project(people(60))
    place.worker(threads=8, processes=2, settings=environment)
    match(project, **environment)
    shown = ended(place, project)
    assert shown["tasks"] == {"total": 60, "completed": 60} and shown["done"] == 1.0
    assert shown["decisions"]["matched"] > 30
    task = place.row("SELECT * FROM tasks WHERE decision = 'matched' ORDER BY id LIMIT 1")
    assert task is not None and task["candidates"][0]["qid"] == task["qid"] and task["candidates"][0]["reasons"]
    seen = httpx.get(f"{sandbox.url}/w/_arrivals").json()
    calls, span = len(seen["arrivals"]), seen["arrivals"][-1] - seen["arrivals"][0]
    assert calls > 90 and seen["busiest_second"] <= 48
    assert (calls - 8) / span <= 40
    assert place.count("SELECT sum(attempts) FROM pipeline.jobs") == 0
    assert (
        place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'snoozed' AND error LIKE '%%rate_limit%%'")
        > 0
    )
    assert (
        place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'match-finish' AND status = 'succeeded'") == 1
    )


def test_one_retry_after_slows_every_worker_and_charges_nobody(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """Nobody asks between the 429 and its time, and then all end as if nothing had been."""
    sandbox.add_fault(match="/w/api.php", status=429, retry_after="4", times=1)
    project = new_project(people(60))
    match(project)
    place.worker(threads=6, processes=2, settings=environment)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.rate_limits WHERE paused_until > now()"), 30, "the pause"
    )
    [rate_limit] = place.rows("SELECT * FROM pipeline.rate_limits WHERE name = 'wikidata'")
    ended(place, project)
    assert rate_limit["pause_reason"] == "retry_after"
    assert place.count("SELECT sum(attempts) FROM pipeline.jobs") == 0
    early = place.count(
        """SELECT count(*) FROM pipeline.attempts WHERE phase = 'entity-match' AND outcome = 'succeeded'
           AND started_at BETWEEN %s - interval '2 seconds' AND %s""",
        rate_limit["paused_until"],
        rate_limit["paused_until"],
    )
    assert early == 0


def test_a_project_deleted_while_fifty_of_its_tasks_run_leaves_nothing(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """The seed's race: every message acknowledged, no row left, nothing dead-lettered."""
    sandbox.add_fault(match="/w/api.php", delay=1.5)
    fast = {**environment, "WIKIDATA_RATE": "2000", "WIKIDATA_BURST": "500"}
    project = new_project(people(80))
    match(project)
    place.db.execute("UPDATE pipeline.rate_limits SET rate = NULL")
    place.worker(threads=30, processes=2, settings=fast)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'running'") == 50, 60, "fifty at once"
    )
    with database.engine().begin() as connection:
        delete_project(connection, project)
    place.until(lambda: place.depth("match.entity-match") == 0, 60, "every message to be acknowledged")
    place.until(lambda: place.counter("discarded") + place.counter("duplicates") > 0, 20, "the attempts to learn it")
    engine = [f"pipeline.{name}" for name in ("jobs", "outbox", "attempts", "batches", "permits")]
    for table in ("projects", "dataset_entries", "tasks", *engine):
        assert place.count(f"SELECT count(*) FROM {table}") == 0, table
    assert place.depth("match.entity-match.XQ") == 0 and place.depth("match-finish.project-completion") == 0


def test_cancelling_and_failing_complete_the_rest(place: Place, sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Tasks that cannot run fail with their reason, those cancelled by hand keep nothing; the project completes."""
    project = new_project([{"name": f"Person {n}"} for n in range(6)])
    place.db.execute("UPDATE projects SET settings = '{\"candidates\": 99}' WHERE id = %s", (project,))
    place.db.execute("UPDATE tasks SET status = 'QUEUED' WHERE project_id = %s", (project,))
    place.db.execute("UPDATE tasks SET status = 'CANCELLED' WHERE id IN (SELECT id FROM tasks ORDER BY id LIMIT 2)")
    place.worker(threads=4, settings=environment, PIPELINE_BACKOFF_SCALE="0.01")
    shown = ended(place, project)
    assert shown["tasks"] == {"total": 6, "cancelled": 2, "failed": 4}
    assert "candidates" in place.rows("SELECT error_message FROM tasks WHERE status = 'FAILED'")[0]["error_message"]
    place.db.execute("UPDATE projects SET settings = '{}' WHERE id = %s", (project,))
    place.db.execute("UPDATE tasks SET status = 'QUEUED' WHERE project_id = %s", (project,))
    shown = ended(place, project)
    assert shown["tasks"] == {"total": 6, "completed": 6} and shown["decisions"] == {"none": 6}


def test_a_large_project_is_fanned_out_by_a_job_of_its_own_and_can_be_cancelled(
    place: Place, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call itself makes one job; that one queues the tasks, page by page; a cancel ends them all."""
    monkeypatch.setattr("actors.match.projects.AT_ONCE", 100)
    project = new_project([{"name": f"Person {n}"} for n in range(1200)])
    started = match(project)
    assert [row["workflow"] for row in place.rows("SELECT workflow FROM pipeline.jobs")] == ["match-fanout"]
    place.worker(threads=2, queues=("match-fanout.fan-out",), settings=environment)
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.batches WHERE sealed"), 30, "the fan-out")
    assert place.count("SELECT total FROM pipeline.batches WHERE id = %s", started["batch_id"]) == 1200
    with database.engine().begin() as connection:
        assert cancel_project(connection, project) == 1200
        assert progress(connection, project)["status"] == "CANCELLED"
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'match' AND status = 'cancelled'") == 1200


def test_ten_thousand_tasks_are_queued_with_one_statement_for_the_jobs(
    place: Place, environment: dict[str, str]
) -> None:
    """Counted as PostgreSQL receives them: at most eleven statements, whatever the number of jobs."""
    project = new_project([{"name": f"Person {n}"} for n in range(10_000)])
    sent: list[str] = []
    with database.engine().begin() as connection:
        event.listen(connection, "before_cursor_execute", lambda c, k, statement, *rest: sent.append(statement))
        started = start_match(connection, project)
    assert started["tasks"] == 10_000 and len(sent) <= 11, sent
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'match'") == 10_000
    assert place.count("SELECT count(*) FROM pipeline.outbox") == 10_000


def test_delete_and_fan_out_do_not_block_one_another(
    place: Place, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted in the middle of its fan-out, the project is gone and the fan-out with it."""
    monkeypatch.setattr("actors.match.projects.AT_ONCE", 10)
    project = new_project([{"name": f"Person {n}"} for n in range(4000)])
    match(project)
    place.worker(threads=4, settings=environment)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'match'") > 0, 30, "the first page"
    )
    done = threading.Event()

    def delete() -> None:
        with database.engine().begin() as connection:
            connection.execute(text("SET LOCAL deadlock_timeout = '1min'"))
            delete_project(connection, project)
        done.set()

    threading.Thread(target=delete).start()
    assert done.wait(30)
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.jobs") == 0, 20, "the jobs to be gone")
    assert place.count("SELECT count(*) FROM tasks") == place.count("SELECT count(*) FROM pipeline.batches") == 0
