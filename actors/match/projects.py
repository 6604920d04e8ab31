"""What can be done with a project: create, match, watch, cancel, delete. All in the caller's transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from sqlalchemy import Connection, TextClause, text

from actors.match.config import RATE_LIMIT, MatchSettings
from actors.match.decide import ProjectSettings
from actors.match.fan_out import OPEN
from pipeline import BadInput, cancel, open_batch, seal_batch, set_rate_limit, submit

# Above this many tasks the fan-out is itself a job.
AT_ONCE = 10_000
Which = Literal["all", "unfinished"]

_CREATE = text("insert into projects (name, settings) values (:name, cast(:settings as jsonb)) returning id")
_READ = text("select * from projects where id = :project")
_LOCK = text("select * from projects where id = :project for update")
_COUNT = text(f"select count(*) from tasks where {OPEN}")  # noqa: S608
_TRACE = text("select set_config('pipeline.traceparent', coalesce(:trace, ''), true)")
_QUEUE = text(f"update tasks set status = 'QUEUED', round = :round where {OPEN}")  # noqa: S608
_BEGIN = text("""
    update projects set status = 'MATCHING', round = :round, batch_id = :batch, counts = null, completed_at = null,
        updated_at = now() where id = :project
""")
_END = text("update projects set status = :status, completed_at = now(), updated_at = now() where id = :project")
_FAN_OUT = text("select job_id from pipeline.keys where workflow = 'match-fanout' and key = :key")
_CANCEL = text("update tasks set status = 'CANCELLED' where project_id = :project and status = 'QUEUED'")
_DELETE = text("delete from projects where id = :project returning id")
_TALLY = text("""
    select status, decision, count(*) as n from tasks where project_id = :project group by status, decision
""")


class NoSuchProject(BadInput):
    """There is no project of that number, or no longer."""


class NotNow(BadInput):
    """The project's state does not allow it; the message says what to do first."""


def create_project(connection: Connection, name: str, settings: ProjectSettings | None = None) -> int:
    """A new project without records. Returns its number."""
    if not 1 <= len(name.strip()) <= 200 or "\x00" in name:
        raise BadInput("a project's name has 1 to 200 characters")
    encoded = (settings or ProjectSettings()).model_dump_json()
    return int(connection.execute(_CREATE, {"name": name.strip(), "settings": encoded}).scalar_one())


def exists(connection: Connection, project: int) -> bool:
    """Whether there is a project of that number."""
    return connection.execute(_READ, {"project": project}).one_or_none() is not None


def start_match(
    connection: Connection, project: int, which: Which = "all", traceparent: str | None = None
) -> dict[str, Any]:
    """Queue the project's tasks: one job each, in one batch, submitted together; above 10,000 by a job of its own."""
    row = _one(connection, _LOCK, project)
    if row["status"] == "MATCHING":
        raise NotNow(f"project {project} is being matched already; wait for its end, or cancel it first")
    values = {"project": project, "round": row["round"] + 1, "unfinished": which == "unfinished"}
    total = connection.execute(_COUNT, values).scalar_one()
    if not total:
        raise NotNow(f"project {project} has nothing to match; add entries first")
    limits = MatchSettings()
    set_rate_limit(connection, RATE_LIMIT, limits.calls_per_second, limits.rate_limit_burst)
    batch = open_batch(connection, "match-finish", {"project_id": project})
    connection.execute(_BEGIN, {"project": project, "round": values["round"], "batch": batch})
    if total > AT_ONCE:
        body = {"project_id": project, "round": values["round"], "unfinished": values["unfinished"], "total": total}
        submit(connection, "match-fanout", body, key=f"{project}:{values['round']}", traceparent=traceparent)
    else:
        connection.execute(_TRACE, {"trace": traceparent})
        connection.execute(_QUEUE, values)
        seal_batch(connection, batch)
    return {"project_id": project, "tasks": total, "round": values["round"], "batch_id": batch}


def progress(connection: Connection, project: int) -> dict[str, Any]:
    """The project's row, its tasks by status and its decisions by kind."""
    found = _one(connection, _READ, project)
    tally = connection.execute(_TALLY, {"project": project}).all()
    total = sum(n for _, _, n in tally)
    waiting = sum(n for status, _, n in tally if status in ("NEW", "QUEUED"))
    return {
        **_shown(found),
        "tasks": {"total": total, **_sums((status, n) for status, _, n in tally)},
        "decisions": _sums((decision, n) for _, decision, n in tally if decision),
        "done": round((total - waiting) / total, 4) if total else 0.0,
    }


def cancel_project(connection: Connection, project: int) -> int:
    """Cancel what is queued or running; nothing of it is kept after this commits. Returns how many tasks it hit."""
    row = _one(connection, _LOCK, project)
    if row["status"] != "MATCHING":
        raise NotNow(f"project {project} is not being matched (it is {row['status']}); there is nothing to cancel")
    for job in connection.execute(_FAN_OUT, {"key": f"{project}:{row['round']}"}).scalars().all():
        cancel(connection, job, "its project was cancelled")
    connection.execute(_END, {"project": project, "status": "CANCELLED"})
    hit = connection.execute(_CANCEL, {"project": project}).rowcount
    if row["batch_id"] is not None:
        seal_batch(connection, row["batch_id"])
    return hit


def delete_project(connection: Connection, project: int) -> None:
    """The project, its records, tasks and jobs vanish, also those that run at this moment."""
    if connection.execute(_DELETE, {"project": project}).scalar_one_or_none() is None:
        raise NoSuchProject(f"there is no project {project}")


def _one(connection: Connection, statement: TextClause, project: int) -> Mapping[str, Any]:
    row = connection.execute(statement, {"project": project}).mappings().one_or_none()
    if row is None:
        raise NoSuchProject(f"there is no project {project}")
    return dict(row)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: row[key]
        for key in ("id", "name", "status", "settings", "round", "created_at", "updated_at", "completed_at")
    }


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for key, n in pairs:
        sums[key.lower()] += n
    return dict(sums)
