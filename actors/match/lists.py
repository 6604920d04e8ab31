"""Projects and tasks in pages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

_PROJECTS = text("""
    select id, name, status, settings, round, created_at, updated_at, completed_at from projects
    where id < :before order by id desc limit :limit
""")
_TASKS = text("""
    select t.id, t.dataset_entry_id, e.external_id, e.name, t.status, t.decision, t.qid, t.score, t.why,
        t.error_message, case when :candidates then t.candidates end as candidates, t.updated_at, t.completed_at
    from tasks t join dataset_entries e on e.id = t.dataset_entry_id
    where t.project_id = :project and t.id > :after and (cast(:status as text) is null or t.status = :status)
        and (cast(:decision as text) is null or t.decision = :decision)
    order by t.id limit :limit
""")


def list_projects(connection: Connection, before: int | None, limit: int) -> list[dict[str, Any]]:
    """Projects, newest first, those before the given one."""
    values = {"before": 2**63 - 1 if before is None else before, "limit": limit}
    return [dict(row) for row in connection.execute(_PROJECTS, values).mappings()]


def list_tasks(
    connection: Connection,
    project: int,
    after: int,
    limit: int,
    *,
    status: str | None = None,
    decision: str | None = None,
    candidates: bool = False,
) -> list[dict[str, Any]]:
    """A project's tasks with their records, in the order they came, those after the given one."""
    values = {
        "project": project,
        "after": after,
        "limit": limit,
        "status": status,
        "decision": decision,
        "candidates": candidates,
    }
    return [dict(row) for row in connection.execute(_TASKS, values).mappings()]
