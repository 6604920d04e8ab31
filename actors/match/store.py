"""Reading a task for its attempt, and keeping what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Connection, text

from actors.match.decide import Decision, ProjectSettings
from actors.match.memory import Memory
from actors.match.records import Record, read_record
from actors.match.score import Scored
from pipeline import Job, Permanent

Write = Callable[[Connection], None]

_READ = """
    select e.name, e.data, p.settings, t.found from tasks t
        join dataset_entries e on e.id = t.dataset_entry_id join projects p on p.id = t.project_id
    where t.id = :task and t.status = 'QUEUED'
"""
_REMEMBER = "update tasks set found = cast(:found as jsonb) where id = :task and status = 'QUEUED'"
_KEEP = text("""
    update tasks set status = 'COMPLETED', decision = :decision, qid = :qid, score = :score, why = :why,
        candidates = cast(:candidates as jsonb), found = null, error_message = null, completed_at = now()
    where id = :task and status = 'QUEUED'
""")
_STORED = text("""
    select t.id as task_id, t.project_id, t.status, e.name, e.external_id, t.decision, t.qid, t.score, t.why,
        t.candidates
    from pipeline.jobs j join tasks t on t.id::text = j.body ->> 'task_id'
        join dataset_entries e on e.id = t.dataset_entry_id
    where j.id = :job
""")


@dataclass(frozen=True)
class Task:
    """What is to be matched and how. ``memory`` is of the searches that an earlier attempt made."""

    id: int
    record: Record
    settings: ProjectSettings
    memory: Memory = field(default_factory=Memory)


async def load_task(job: Job) -> Task | None:
    """The job's task; None if it is gone or no longer wants to be matched (cancelled, done)."""
    task = job.body.get("task_id")
    if not isinstance(task, int) or isinstance(task, bool) or not 0 < task < 2**63:
        raise Permanent("the job names no task: queue it with UPDATE tasks SET status = 'QUEUED' WHERE id = …")
    rows = await job.read(_READ, task=task)
    if not rows:
        return None
    settings = _settings(rows[0]["settings"])
    record = read_record(rows[0]["name"], rows[0]["data"], settings.type)
    return Task(task, record, settings, Memory.read(rows[0]["found"]))


async def remember(job: Job, task: int, memory: Memory) -> None:
    """Keep the searches made so far: the job must wait, and shall not ask again when it comes back."""
    await job.keep(_REMEMBER, task=task, found=json.dumps(memory.shown()))


def _settings(stored: Any) -> ProjectSettings:
    try:
        return ProjectSettings.model_validate(stored)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)[:5])
        raise Permanent(f"the project's settings are wrong, correct them and queue the task again: {wrong}") from None


def keep_decision(task: int, decision: Decision, ranked: Sequence[Scored]) -> Write:
    """A write that keeps the decision and the ranked candidates, if the task still waits for them."""
    values = {
        "task": task,
        "decision": decision.verdict,
        "qid": decision.qid,
        "score": decision.score,
        "why": decision.why,
        "candidates": json.dumps([scored.shown() for scored in ranked], ensure_ascii=False),
    }
    return lambda connection: _run(connection, values)


def stored_match(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """What is kept about a job's task; None if the task is gone."""
    row = connection.execute(_STORED, {"job": job_id}).mappings().one_or_none()
    return dict(row) if row is not None else None


def _run(connection: Connection, values: dict[str, Any]) -> None:
    connection.execute(_KEEP, values)
