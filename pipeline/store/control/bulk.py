"""What is done with many jobs in the background, and canaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

import orjson
from sqlalchemy import Connection, text

from pipeline.store.control.actions import Actor

BEGIN = text("""SELECT pipeline.begin_bulk(:who, :door, :origin, :action, CAST(:filter AS jsonb), :total,
    CAST(:per_second AS double precision), :reason, CAST(:job AS uuid))""")
STEER = text("SELECT pipeline.steer_bulk(:id, :state)")
LIST = text("""SELECT b.id, b.at, b.who, b.action, b.state, b.filter, b.per_second, b.reason, b.total, b.done,
    b.ended_at,
    (SELECT count(*) FROM (SELECT 1 FROM pipeline.bulk_held h WHERE h.action_id = b.id LIMIT 10000) h) AS held,
    CASE WHEN b.action = 'canary' THEN b.place END AS job,
    CASE WHEN b.action = 'canary' THEN (SELECT j.status FROM pipeline.jobs j WHERE j.id = b.place) END AS job_status
    FROM pipeline.bulk_actions b
    WHERE b.ended_at IS NULL OR (:ended AND b.ended_at > now() - interval '1 day') ORDER BY b.id DESC LIMIT 100""")
ONE = text("SELECT state FROM pipeline.bulk_actions WHERE id = :id")

Action = Literal["replay", "discard", "cancel", "canary"]
State = Literal["running", "paused", "stopped"]


def begin(
    connection: Connection,
    actor: Actor,
    action: Action,
    wanted: Mapping[str, Any],
    *,
    total: int,
    per_second: float | None = None,
    reason: str | None = None,
    job: UUID | None = None,
) -> int | None:
    """The number of the action. None: the job is no canary, because it is not failed any more."""
    values = {**vars(actor), "action": action, "filter": orjson.dumps(wanted).decode(), "total": total}
    asked = {**values, "per_second": per_second, "reason": reason, "job": job}
    found: int | None = connection.execute(BEGIN, asked).scalar_one()
    return found


def steer(connection: Connection, number: int, state: State) -> bool:
    """Pause, resume or stop one. False if it has ended, or there is none."""
    return bool(connection.execute(STEER, {"id": number, "state": state}).scalar_one())


def state(connection: Connection, number: int) -> str | None:
    """How it is, or None if there is none."""
    found: str | None = connection.execute(ONE, {"id": number}).scalar()
    return found


def actions(connection: Connection, *, ended: bool = True) -> list[dict[str, Any]]:
    """Those that have not ended, and those of the last day; newest first."""
    return [dict(row) for row in connection.execute(LIST, {"ended": ended}).mappings()]
