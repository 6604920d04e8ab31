"""``/v1/projects``: records to match against Wikidata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from actors.match import entries, lists, projects
from actors.match.route_models import (
    ENTRIES_BODY,
    Added,
    Created,
    DecisionName,
    MatchStarted,
    NewProject,
    ProjectCancelled,
    ProjectDetail,
    ProjectRow,
    TaskRow,
    TaskStatus,
    WhichTasks,
    read_entries,
)
from pipeline import engine
from pipeline.api import (
    Cursor,
    Limit,
    Operator,
    Page,
    Problem,
    Viewer,
    allow_body,
    conflict,
    cut,
    decode_cursor,
    not_found,
    pieces,
    problems,
    transaction,
)

router = APIRouter(prefix="/v1/projects", tags=["projects"])
READ = problems(401, 403, 404, 422, 503)
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
# Large enough for millions of rows; they are never in memory together.
LARGEST_CSV = 4 << 30
# Work on a whole project takes longer than a look at it, but not forever.
BOUNDS = "SET LOCAL statement_timeout = '120s'; SET LOCAL lock_timeout = '10s'"
ProjectId = Annotated[int, Path(ge=1, le=2**53, description="a project's number")]


@router.post("", status_code=201, responses=problems(400, 401, 403, 413, 422, 503))
def create(who: Operator, wish: NewProject, response: Response) -> Created:  # noqa: ARG001  the dependency is the check
    """A new project, without records as yet."""
    with transaction() as connection:
        project = projects.create_project(connection, wish.name, wish.settings)
    response.headers["Location"] = f"/v1/projects/{project}"
    return Created(id=project)


@router.get("", responses=problems(401, 403, 422, 503))
def list_projects(who: Viewer, cursor: Cursor = None, limit: Limit = 50) -> Page[ProjectRow]:  # noqa: ARG001
    """Projects, newest first."""
    place = decode_cursor(cursor, _number)
    with transaction() as connection:
        rows = lists.list_projects(connection, place[0] if place else None, limit + 1)
    return Page[ProjectRow].model_validate(cut(rows, limit, lambda row: int(row["id"])))


@router.get("/{project_id}", responses=READ)
def show(who: Viewer, project_id: ProjectId) -> ProjectDetail:  # noqa: ARG001
    """One project: how far it is, and what was decided."""
    with _whole_project() as connection:
        return ProjectDetail.model_validate(projects.progress(connection, project_id))


@router.get("/{project_id}/tasks", responses=READ)
def list_tasks(
    who: Viewer,  # noqa: ARG001
    project_id: ProjectId,
    *,
    status: Annotated[TaskStatus | None, Query()] = None,
    decision: Annotated[DecisionName | None, Query()] = None,
    candidates: Annotated[
        bool, Query(description="with the ranked candidates and the reasons for their scores")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[TaskRow]:
    """The project's tasks with their decisions, in the order of its records."""
    place = decode_cursor(cursor, _number)
    with transaction() as connection:
        if not projects.exists(connection, project_id):
            raise not_found("project", project_id)
        rows = lists.list_tasks(
            connection,
            project_id,
            place[0] if place else 0,
            limit + 1,
            status=status,
            decision=decision,
            candidates=candidates,
        )
    return Page[TaskRow].model_validate(cut(rows, limit, lambda row: int(row["id"])))


@router.post("/{project_id}/entries", status_code=201, responses=CHANGE | problems(415), openapi_extra=ENTRIES_BODY)
async def add_entries(who: Operator, project_id: ProjectId, request: Request) -> Added:  # noqa: ARG001
    """Add records: a JSON list of objects with a ``name``, or a CSV file of any length, which is read as it comes.

    All or none are added. Known fields help to tell namesakes apart: born, died, founded, published, type,
    description, aliases; ``external_id`` is unique in a project.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/csv":
        allow_body(request, LARGEST_CSV)
        stream = pieces(request.stream())
        return await run_in_threadpool(_add, lambda connection: entries.load_csv(connection, project_id, stream))
    if kind != "application/json":
        raise Problem(415, "Unsupported content type", "send the records as application/json or text/csv")
    given = read_entries(await request.body())
    return await run_in_threadpool(_add, lambda connection: entries.add_entries(connection, project_id, given))


@router.post("/{project_id}/match", status_code=202, responses=CHANGE)
def match(
    who: Operator,  # noqa: ARG001
    project_id: ProjectId,
    response: Response,
    which: Annotated[WhichTasks, Query(description="unfinished leaves those that are decided")] = "all",
    traceparent: Annotated[str | None, Header(description="W3C; the jobs join this trace")] = None,
) -> MatchStarted:
    """Match the project's records: one job each. Large projects are fanned out by a job of their own."""
    with _whole_project() as connection:
        started = projects.start_match(connection, project_id, which, traceparent)
    response.headers["Location"] = f"/v1/projects/{project_id}"
    return MatchStarted(**started, status_url=f"/v1/projects/{project_id}")


@router.post("/{project_id}/cancel", responses=CHANGE)
def cancel(who: Operator, project_id: ProjectId) -> ProjectCancelled:  # noqa: ARG001
    """Cancel what is queued or running. Nothing of a running attempt is kept."""
    with _whole_project() as connection:
        return ProjectCancelled(id=project_id, cancelled=projects.cancel_project(connection, project_id))


@router.delete("/{project_id}", status_code=204, responses=CHANGE)
def delete(who: Operator, project_id: ProjectId) -> None:  # noqa: ARG001
    """Delete the project with its records, tasks and jobs, also while they run."""
    with _whole_project() as connection:
        projects.delete_project(connection, project_id)


def _add(add: Any) -> Added:
    with _whole_project() as connection:
        return Added(added=add(connection))


@contextmanager
def _whole_project() -> Iterator[Connection]:
    try:
        with engine().begin() as connection:
            connection.exec_driver_sql(BOUNDS)
            yield connection
    except projects.NoSuchProject as error:
        raise Problem(404, "No such project", str(error)) from None
    except projects.NotNow as error:
        raise conflict(str(error)) from None


def _number(part: Any) -> int:
    if not isinstance(part, int) or isinstance(part, bool) or not 0 <= part <= 2**53:
        raise ValueError("not a number")
    return part
