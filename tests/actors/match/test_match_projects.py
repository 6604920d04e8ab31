"""The life of a project on a real PostgreSQL, its phases run by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Connection, text

from actors.match.decide import Decision, ProjectSettings
from actors.match.entries import add_entries
from actors.match.fan_out import fan_out
from actors.match.lists import list_projects, list_tasks
from actors.match.project_completion import project_completion
from actors.match.projects import (
    NoSuchProject,
    NotNow,
    cancel_project,
    create_project,
    delete_project,
    progress,
    start_match,
)
from actors.match.store import keep_decision, stored_match
from pipeline.declare.errors import BadInput, StaleClaim
from pipeline.declare.job import Job
from pipeline.testing import FakeServices


def project_with(connection: Connection, entries: int) -> int:
    project = create_project(connection, "people", ProjectSettings(languages=("de", "en")))
    add_entries(connection, project, [{"name": f"Person {n}"} for n in range(entries)])
    return project


def count(connection: Connection, statement: str) -> int:
    return int(connection.execute(text(statement)).scalar_one() or 0)


def decide_all(connection: Connection, project: int) -> None:
    for task in list_tasks(connection, project, 0, 1000, status="QUEUED"):
        keep_decision(task["id"], Decision("none", None, None, ""), [])(connection)


def complete(connection: Connection, project: int) -> None:
    done = project_completion(Job(body={"project_id": project}))
    assert done.write is not None
    connection.execute(text("update pipeline.batches set remaining = 0, completed_at = now() where sealed"))
    done.execute(connection)


def test_a_project_from_its_creation_to_its_end_and_again(connection: Connection) -> None:
    """Each round is a round of new jobs; ``unfinished`` leaves what is decided."""
    project = project_with(connection, 3)
    assert progress(connection, project)["tasks"] == {"total": 3, "new": 3}
    assert start_match(connection, project)["tasks"] == 3
    with pytest.raises(NotNow, match="being matched already"):
        start_match(connection, project)
    complete(connection, project)
    assert progress(connection, project)["status"] == "MATCHING"
    decide_all(connection, project)
    complete(connection, project)
    shown = progress(connection, project)
    assert (shown["status"], shown["done"], shown["decisions"]) == ("COMPLETED", 1.0, {"none": 3})
    add_entries(connection, project, [{"name": "late"}])
    assert start_match(connection, project, "unfinished")["tasks"] == 1
    decide_all(connection, project)
    complete(connection, project)
    assert start_match(connection, project)["tasks"] == 4
    assert count(connection, "select count(*) from pipeline.jobs where workflow = 'match'") == 3 + 1 + 4


def test_the_limit_of_the_settings_is_the_rate_limits(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set again at every start; half of the bucket is kept for calls that come late."""
    monkeypatch.setenv("WIKIDATA_RATE", "17")
    monkeypatch.setenv("WIKIDATA_BURST", "6")
    start_match(connection, project_with(connection, 1))
    row = connection.execute(text("select rate, burst from pipeline.rate_limits where name = 'wikidata'")).one()
    assert tuple(row) == (17.0, 3.0)


def test_the_callers_trace_goes_with_every_job(connection: Connection) -> None:
    """From the request to each task."""
    start_match(connection, project_with(connection, 2), traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    assert count(connection, f"select count(*) from pipeline.jobs where trace_id = '{'a' * 32}'") == 2


def test_a_fan_out_that_dies_and_starts_again_doubles_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that were queued and even decided before the crash stay as they are."""
    monkeypatch.setattr("actors.match.projects.AT_ONCE", 1)
    monkeypatch.setattr("actors.match.fan_out._PAGE_END", fan_out.__globals__["_PAGE_END"].replace("1000", "4"))
    project = project_with(connection, 10)
    start_match(connection, project)
    body = connection.execute(text("select body from pipeline.jobs where workflow = 'match-fanout'")).scalar_one()
    pages = 0

    def keep(statement: str, values: Mapping[str, Any]) -> bool:
        nonlocal pages
        pages += 1
        if pages == 2:
            return False
        connection.execute(text(statement), dict(values))
        return True

    def read(statement: str, values: Mapping[str, Any]) -> Any:
        return connection.execute(text(statement), dict(values)).mappings().all()

    job = Job(body=body, services=FakeServices(read=read, keep=keep))
    with pytest.raises(StaleClaim):
        fan_out(job)
    assert count(connection, "select count(*) from pipeline.jobs where workflow = 'match'") == 4
    decide_all(connection, project)
    done = fan_out(job)
    assert done.result == {"queued": 6} and done.write is not None
    done.execute(connection)
    assert count(connection, "select count(*) from pipeline.jobs where workflow = 'match'") == 10
    assert count(connection, "select total from pipeline.batches where sealed") == 10


def test_a_task_whose_job_is_lost_does_not_keep_its_project_waiting(connection: Connection) -> None:
    """The completion looks for them: the project ends, and says what became of them."""
    project = project_with(connection, 2)
    start_match(connection, project)
    decide_one = list_tasks(connection, project, 0, 1)[0]["id"]
    keep_decision(decide_one, Decision("matched", "Q5", 0.9, ""), [])(connection)
    jobs = connection.execute(
        text("select id from pipeline.jobs where workflow = 'match' order by body ->> 'task_id'")
    ).all()
    connection.execute(text("delete from pipeline.jobs where id = :id"), {"id": jobs[1].id})
    complete(connection, project)
    shown = progress(connection, project)
    assert (shown["status"], shown["tasks"]) == ("COMPLETED", {"total": 2, "completed": 1, "failed": 1})
    stored = stored_match(connection, jobs[0].id)
    assert stored is not None and (stored["decision"], stored["qid"]) == ("matched", "Q5")


def test_what_came_too_late_is_not_kept(connection: Connection) -> None:
    """The seed's optimistic check: only a task that still waits takes a decision."""
    project = project_with(connection, 1)
    start_match(connection, project)
    assert cancel_project(connection, project) == 1
    task = list_tasks(connection, project, 0, 1)[0]["id"]
    keep_decision(task, Decision("matched", "Q5", 0.9, ""), [])(connection)
    assert list_tasks(connection, project, 0, 1)[0]["status"] == "CANCELLED"
    with pytest.raises(NotNow, match="nothing to cancel"):
        cancel_project(connection, project)


def test_what_is_not_there_is_said(connection: Connection) -> None:
    """By number, with what to do."""
    for act in (start_match, progress, cancel_project, delete_project):
        with pytest.raises(NoSuchProject, match="there is no project 999999"):
            act(connection, 999_999)
    with pytest.raises(NotNow, match="add entries first"):
        start_match(connection, create_project(connection, "empty"))
    with pytest.raises(BadInput, match="1 to 200 characters"):
        create_project(connection, " ")


def test_lists_come_in_pages(connection: Connection) -> None:
    """Newest project first; tasks in the order of their records."""
    first, second = project_with(connection, 3), project_with(connection, 1)
    assert [row["id"] for row in list_projects(connection, None, 2)] == [second, first]
    assert [row["id"] for row in list_projects(connection, second, 1)] == [first]
    page = list_tasks(connection, first, 0, 2)
    assert [row["name"] for row in page] == ["Person 0", "Person 1"]
    assert [row["name"] for row in list_tasks(connection, first, page[-1]["id"], 2)] == ["Person 2"]
    assert list_tasks(connection, first, 0, 9, decision="matched") == []
