"""What the end of a job submits, in memory: as in submit_hooks.sql."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pipeline.declare.job import decode
from pipeline.declare.phase import BODY_LIMIT
from pipeline.declare.registry import workflows
from pipeline.declare.states import Status
from pipeline.testing.memory.rows import Row
from pipeline.testing.memory.wishes import Wish

LONGEST_ERROR = 4000


def hooks_of(row: Row, now: datetime) -> Iterator[Wish]:
    """A job for each hook of this end, in their order. One whose workflow nobody has declared is left out."""
    known = workflows()
    told = _told(row, now)
    for hook in row.workflow.hooks:
        if hook.event == row.status and hook.submits in known and known[hook.submits].phases:
            body = _fitting({**json.loads(hook.body), **told})
            yield Wish(hook.submits, [body], traceparent=f"00-{row.trace_id}-{row.span_id}-01")


def _told(row: Row, now: datetime) -> dict[str, Any]:
    result = row.results.get(row.spec.name) if row.status is Status.SUCCEEDED else None
    return {
        "job": str(row.id),
        "workflow": row.workflow.name,
        "phase": row.spec.name,
        "state": str(row.status),
        "error": row.error and row.error[:LONGEST_ERROR],
        "body": decode(row.body),
        "result": decode(result or "null"),
        "ended_at": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
    }


def _fitting(body: dict[str, Any]) -> str:
    """Its JSON, without the result, the body and the error as far as they do not fit."""
    for part in ("result", "body", "error"):
        if len(_json(body).encode()) <= BODY_LIMIT:
            break
        body[part] = None
    return _json(body)


def _json(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False)
