"""What a change of tasks and projects means, on a real PostgreSQL; here by hand, as the seed does it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from actors.match.entries import add_entries
from actors.match.projects import create_project

KEY = "idempotency_key"


def rows(connection: Connection, statement: str, **values: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(text(statement), values).mappings()]


def run(connection: Connection, statement: str, **values: Any) -> None:
    connection.execute(text(statement), values)


def project_with(connection: Connection, entries: int) -> int:
    project = create_project(connection, "people")
    add_entries(connection, project, [{"name": f"Person {n}"} for n in range(entries)])
    return project


def jobs(connection: Connection, workflow: str = "match") -> list[dict[str, Any]]:
    """By task and generation: ids of one millisecond are in no order."""
    return rows(
        connection,
        """select * from pipeline.jobs where workflow = :workflow
        order by (body ->> 'task_id')::bigint, split_part(idempotency_key, ':', 2)""",
        workflow=workflow,
    )


def statuses(connection: Connection) -> list[str]:
    return [row["status"] for row in rows(connection, "select status from tasks order by id")]


def fail(connection: Connection, job: UUID) -> None:
    """As a worker would: claim it, then give it up."""
    run(connection, "delete from pipeline.outbox where job_id = :job", job=job)
    run(
        connection,
        """update pipeline.jobs set status = 'running', fence = 1, locked_by = 'w', locked_at = now(),
                       heartbeat_at = now() where id = :job""",
        job=job,
    )
    verdict = rows(connection, "select pipeline.fail(:job, 1, 'Wikidata refused') as said", job=job)[0]["said"]
    assert verdict == "failed"


def test_an_entry_brings_its_task(connection: Connection) -> None:
    """Also one that was inserted by hand; a task begins as NEW and in no other state."""
    project = project_with(connection, 2)
    run(connection, "insert into dataset_entries (project_id, name) values (:p, 'by hand')", p=project)
    assert statuses(connection) == ["NEW"] * 3
    with pytest.raises(DBAPIError, match="a task begins as NEW, not QUEUED"):
        run(connection, "insert into tasks (project_id, dataset_entry_id, status) values (:p, 1, 'QUEUED')", p=project)


def test_setting_tasks_to_queued_submits_one_job_each_in_one_batch(connection: Connection) -> None:
    """The seed's UPDATE: bodies hold references only, the rate limit is Wikidata's, the batch will complete the project."""
    project = project_with(connection, 3)
    run(connection, "update tasks set status = 'QUEUED' where project_id = :p", p=project)
    tasks = rows(connection, "select * from tasks order by id")
    made = jobs(connection)
    assert [job["body"] for job in made] == [
        {"project_id": project, "task_id": t["id"], "dataset_entry_id": t["dataset_entry_id"]} for t in tasks
    ]
    assert [job[KEY] for job in made] == [f"{task['id']}:1" for task in tasks]
    assert {(job["rate_limit"], job["phase"]) for job in made} == {("wikidata", "entity-match")}
    [batch] = rows(connection, "select * from pipeline.batches")
    assert {job["batch_id"] for job in made} == {batch["id"]}
    assert (batch["total"], batch["sealed"], batch["callback_body"]) == (3, True, {"project_id": project})
    assert rows(connection, "select status from projects") == [{"status": "MATCHING"}]


def test_queueing_what_is_queued_keeps_its_job_and_replaces_a_lost_one(connection: Connection) -> None:
    """The seed's sweeper may run as often as it likes."""
    project_with(connection, 2)
    run(connection, "update tasks set status = 'QUEUED'")
    kept, lost = jobs(connection)
    run(connection, "select pipeline.delete(array[cast(:job as uuid)])", job=lost["id"])
    run(connection, "update tasks set status = 'QUEUED' where updated_at < now() + interval '1 hour'")
    first, second = jobs(connection)
    assert (first["id"], first[KEY]) == (kept["id"], kept[KEY])
    assert second[KEY] == lost[KEY].replace(":1", ":2")


def test_cancelling_by_hand_cancels_the_jobs(connection: Connection) -> None:
    """And a cancelled task can be queued again, under a new key."""
    project_with(connection, 3)
    run(connection, "update tasks set status = 'QUEUED'")
    run(connection, "update tasks set status = 'CANCELLED'")
    assert [job["status"] for job in jobs(connection)] == ["cancelled"] * 3
    assert len(jobs(connection, "match-finish")) == 1
    run(connection, "update tasks set status = 'QUEUED' where id = (select min(id) from tasks)")
    assert [job["status"] for job in jobs(connection)] == ["cancelled", "pending", "cancelled", "cancelled"]
    assert statuses(connection) == ["QUEUED", "CANCELLED", "CANCELLED"]


def test_a_job_that_fails_takes_its_task_along_and_back_again(connection: Connection) -> None:
    """FAILED with the error; QUEUED again, under the same key, when the job is replayed; CANCELLED with its job."""
    project_with(connection, 2)
    run(connection, "update tasks set status = 'QUEUED'")
    failed, cancelled = jobs(connection)
    fail(connection, failed["id"])
    run(connection, "select pipeline.cancel(cast(:job as uuid))", job=cancelled["id"])
    shown = rows(connection, "select status, error_message from tasks order by id")
    assert shown[0] == {"status": "FAILED", "error_message": "Wikidata refused"}
    assert shown[1]["status"] == "CANCELLED"
    run(connection, "select pipeline.replay(cast(:job as uuid))", job=failed["id"])
    assert statuses(connection) == ["QUEUED", "CANCELLED"]
    assert len(jobs(connection)) == 2


def test_a_strangers_job_does_not_trouble_the_engine(connection: Connection) -> None:
    """Submitted without a task or with a key of its own: it fails like any other."""
    for key in ("weather", "1:x", None):
        [job] = rows(connection, "select pipeline.submit('match', '{}', p_key => :key) as id", key=key)
        fail(connection, job["id"])
    assert {job["status"] for job in jobs(connection)} == {"failed"}


def test_deleting_a_project_leaves_nothing(connection: Connection) -> None:
    """By hand, in the middle of its work: records, tasks, jobs of every round, history, batch, callback."""
    project, other = project_with(connection, 4), project_with(connection, 1)
    run(connection, "update tasks set status = 'QUEUED'")
    run(connection, "update tasks set status = 'CANCELLED' where project_id = :p", p=project)
    run(connection, "update tasks set status = 'QUEUED' where project_id = :p", p=project)
    fail(connection, jobs(connection)[1]["id"])
    run(connection, "delete from projects where id = :p", p=project)
    assert {job["body"]["project_id"] for job in [*jobs(connection), *jobs(connection, "match-finish")]} == {other}
    assert rows(connection, "select distinct project_id from tasks") == [{"project_id": other}]
    assert rows(connection, "select 1 from pipeline.attempts") == []
    assert (
        len(rows(connection, "select 1 from pipeline.batches"))
        == len(rows(connection, "select 1 from pipeline.outbox"))
        == 1
    )
