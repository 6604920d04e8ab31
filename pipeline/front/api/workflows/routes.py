"""The workflows: their chains as PostgreSQL knows them, and the types of what they take and give."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from pipeline.declare.registry import workflows
from pipeline.front.api.http.auth import Viewer
from pipeline.front.api.http.fields import Name
from pipeline.front.api.http.problem import not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.inspect import workflows as stored
from pipeline.store.register import in_force

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])
COMPONENT = "#/components/schemas/"
# How pydantic begins a reference, in JSON.
LOCAL = '"#/$defs/'


class PhaseInForce(BaseModel):
    """A phase with the options that PostgreSQL has for it; they are in force, whatever this process has declared."""

    phase: str
    pool: int | None
    queue_limit: int
    max_attempts: int
    max_crashes: int
    stale_after: float = Field(description="seconds without a heartbeat after which a worker loses the job")
    isolated: bool
    throttle_count: int | None = Field(description="at most so many are sent")
    throttle_seconds: float | None = Field(description="in so many seconds")
    pool_is_set: bool = Field(description="the pool is an operator's, in place of declared_pool")
    declared_pool: int | None
    rate_is_set: bool = Field(description="the rate is an operator's, in place of the declared one")
    declared_throttle_count: int | None
    declared_throttle_seconds: float | None


class Hook(BaseModel):
    """When a job of the workflow ends so, a job of another is submitted."""

    workflow: str
    event: str = Field(description="succeeded, failed or cancelled")
    submits: str


class Turns(BaseModel):
    """How the keys of the workflow's jobs take turns."""

    field: str = Field(description="where a job's key is in its body")
    per_key: int | None = Field(description="jobs of a key that are under way at once; null: any number")
    in_order: bool
    rate_count: int | None = Field(description="so many jobs of a key begin")
    rate_seconds: float | None = Field(description="in so many seconds")


class WorkflowInForce(BaseModel):
    """A workflow. The schemas are null if anything fits, and if this process does not have the workflow declared."""

    name: str
    phases: list[PhaseInForce] = Field(description="in their order")
    body_schema: dict[str, Any] | None = Field(description="JSON Schema of a job's body")
    result_schema: dict[str, Any] | None = Field(description="JSON Schema of what the last phase returns")


class WorkflowDetail(WorkflowInForce):
    """A workflow, and what it has to do with others."""

    hooks: list[Hook] = Field(description="what its jobs submit when they end, and whose ends submit it")
    turns: Turns | None = Field(description="null: its jobs have no keys")


@router.get("", responses=problems(401, 403, 503))
def list_workflows(who: Viewer) -> list[WorkflowInForce]:  # noqa: ARG001
    """Every workflow that PostgreSQL knows, by name: its phases with their options, its types of body and result."""
    with transaction() as connection:
        return [_shown(name, phases) for name, phases in in_force(connection).items()]


@router.get("/{name}", responses=problems(401, 403, 404, 422, 503))
def show(who: Viewer, name: Annotated[Name, Path(description="a workflow's name")]) -> WorkflowDetail:  # noqa: ARG001
    """One workflow, with its hooks and how its keys take turns."""
    with transaction() as connection:
        found = in_force(connection, [name])
        hooks = [one._asdict() for one in stored.hooks(connection, name)]
        turns = stored.turns(connection, name)
    if not found:
        raise not_found("workflow", name)
    shown = _shown(name, found[name]).model_dump()
    return WorkflowDetail.model_validate({**shown, "hooks": hooks, "turns": turns})


def _shown(name: str, phases: list[dict[str, Any]]) -> WorkflowInForce:
    body, result = _schemas(name)
    return WorkflowInForce.model_validate(
        {"name": name, "phases": phases, "body_schema": body, "result_schema": result}
    )


def _schemas(name: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The JSON Schema of a workflow's bodies and of its result; None where this process does not know it."""
    known = workflows().get(name)
    return (None, None) if known is None else (known.body.schema(), known.last_result().schema())


def describe_bodies(openapi: dict[str, Any]) -> None:
    """A new job is one of a typed workflow, with a body of its type, or one of any other workflow."""
    known = openapi["components"]["schemas"]
    # Its name, unless an application has a model of that name as well.
    name = _request_of(openapi, "/v1/jobs").removeprefix(COMPONENT)
    bodies = {one: body for one in sorted(workflows()) if (body := _schemas(one)[0]) is not None}
    if not bodies:
        return
    other = known[name]
    ways = [COMPONENT + _component(known, f"{name}.{one}", _job(other, one, body)) for one, body in bodies.items()]
    free = {**other["properties"]["workflow"], "not": {"enum": list(bodies)}}
    # No workflow has a capital in its name.
    ways.append(COMPONENT + _component(known, f"{name}.Untyped", _with(other, workflow=free)))
    known[name] = {"title": "NewJob", "description": other["description"], "oneOf": [{"$ref": way} for way in ways]}


def _request_of(openapi: dict[str, Any], path: str) -> str:
    content = openapi["paths"][path]["post"]["requestBody"]["content"]
    reference: str = content["application/json"]["schema"]["$ref"]
    return reference


def _job(other: dict[str, Any], workflow: str, body: dict[str, Any]) -> dict[str, Any]:
    found = _with(other, workflow={"const": workflow, "type": "string", "title": "Workflow"}, body=body)
    return found | {"required": ["workflow", "body"]} if body.get("required") else found


def _with(schema: dict[str, Any], **properties: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **properties}}


def _component(known: dict[str, Any], name: str, schema: dict[str, Any]) -> str:
    """Add it under the name, and what its body refers to beside it."""
    moved = json.loads(json.dumps(schema).replace(LOCAL, f'"{COMPONENT}{name}.'))
    for defined, one in moved["properties"]["body"].pop("$defs", {}).items():
        known[f"{name}.{defined}"] = one
    known[name] = moved
    return name
