"""What operators change while jobs run: pauses, pools, rates, workers; and the record of who did what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import Connection, text

from pipeline.store.gateway.callers import readable_errors

# Python has no infinity: a pause that ends when somebody says so has no moment.
PAUSE_PHASES = text("""SELECT queue, nullif(paused_until, 'infinity') FROM pipeline.pause_phases(:workflow, :phase,
    coalesce(now() + make_interval(secs => CAST(:seconds AS double precision)), 'infinity')) ORDER BY queue""")
RESUME_PHASES = text("SELECT queue, was_paused FROM pipeline.resume_phases(:workflow, :phase) ORDER BY queue")
SET_POOL = text("SELECT pipeline.set_pool(:workflow, :phase, :pool, :set)")
SET_RATE = text("SELECT pipeline.set_rate(:workflow, :phase, :count, CAST(:seconds AS double precision), :set)")
SET_KEY_WEIGHT = text("SELECT pipeline.set_key_weight(:workflow, :key, :weight)")
PAUSE_KEY = text("""SELECT pipeline.pause_key(:workflow, :key,
    coalesce(now() + make_interval(secs => CAST(:seconds AS double precision)), 'infinity'))""")
RESUME_KEY = text("SELECT pipeline.resume_key(:workflow, :key)")
# Python has no infinity.
LIST_TURNS = text("""SELECT key, under_way, waiting, weight, paused_until IS NOT NULL AS paused,
    nullif(paused_until, 'infinity') AS paused_until FROM pipeline.list_turns(:workflow, :first, :most)""")
DRAIN = text("SELECT pipeline.drain(:worker, :drain)")
RECORD = text("""SELECT pipeline.record(:who, :door, :origin, :action, :subject, :reason, :jobs,
    CAST(:ids AS uuid[]), CAST(:detail AS jsonb))""")
AUDIT = text("""SELECT id, at, who, door, origin, action, subject, reason, jobs, job_ids[1:5] AS job_ids, detail
    FROM pipeline.audit
    WHERE id < :before AND (CAST(:job AS uuid) IS NULL OR job_ids @> ARRAY[CAST(:job AS uuid)])
      AND (CAST(:who AS text) IS NULL OR who = :who) AND (CAST(:action AS text) IS NULL OR action = :action)
      AND (CAST(:subject AS text) IS NULL OR subject = :subject)
    ORDER BY id DESC LIMIT :limit""")

Door = Literal["api", "dashboard", "command line", "sql"]
NEWEST = 2**63 - 1


class Paused(NamedTuple):
    """A phase that is paused, until then or until somebody resumes it."""

    queue: str
    paused_until: datetime | None


class Resumed(NamedTuple):
    """A phase that is not paused any more."""

    queue: str
    was_paused: bool


class KeyTurns(NamedTuple):
    """A key of a workflow: its jobs that are under way, those that wait for a turn, and what operators say of it."""

    key: str
    under_way: int
    waiting: int
    weight: int
    paused: bool
    paused_until: datetime | None


@dataclass(frozen=True)
class Actor:
    """Who does something, through which door, and from where."""

    who: str
    door: Door
    origin: str | None = None


@dataclass(frozen=True)
class Asked:
    """Which entries of the audit; what is None matches every one."""

    job: UUID | None = None
    who: str | None = None
    action: str | None = None
    subject: str | None = None


def pause_phases(
    connection: Connection, workflow: str | None, phase: str | None, seconds: float | None
) -> list[Paused]:
    """Send nothing to a phase, to all of a workflow, or to any, for so long or until resumed; a longer pause stands."""
    values = {"workflow": workflow, "phase": phase, "seconds": seconds}
    return [Paused._make(row) for row in connection.execute(PAUSE_PHASES, values)]


def resume_phases(connection: Connection, workflow: str | None, phase: str | None) -> list[Resumed]:
    """End every pause of a phase, of all of a workflow, or of all there are."""
    values = {"workflow": workflow, "phase": phase}
    return [Resumed._make(row) for row in connection.execute(RESUME_PHASES, values)]


def set_pool(connection: Connection, workflow: str, phase: str, pool: int | None, *, declared: bool = False) -> bool:
    """Another pool than the code's (None: no limit), or the code's again. False if there is no such phase."""
    values = {"workflow": workflow, "phase": phase, "pool": pool, "set": not declared}
    return bool(connection.execute(SET_POOL, values).scalar_one())


def set_rate(
    connection: Connection, workflow: str, phase: str, rate: tuple[int, float] | None, *, declared: bool = False
) -> bool:
    """At most so many messages in so many seconds (None: no limit), or as the code has it again."""
    count, seconds = rate or (None, None)
    values = {"workflow": workflow, "phase": phase, "count": count, "seconds": seconds, "set": not declared}
    return bool(connection.execute(SET_RATE, values).scalar_one())


def drain(connection: Connection, worker: str, *, wanted: bool) -> bool:
    """Let a worker take nothing new, or jobs again. False if no such worker is alive."""
    return bool(connection.execute(DRAIN, {"worker": worker, "drain": wanted}).scalar_one())


def record(
    connection: Connection,
    actor: Actor,
    action: str,
    *,
    subject: str | None = None,
    reason: str | None = None,
    jobs: int | None = None,
    ids: Sequence[UUID] = (),
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Write down what is done in this transaction."""
    values = {**vars(actor), "action": action, "subject": subject, "reason": reason, "jobs": jobs, "ids": list(ids)}
    connection.execute(RECORD, {**values, "detail": None if detail is None else orjson.dumps(detail).decode()})


def audit(connection: Connection, asked: Asked, before: int | None, limit: int) -> list[dict[str, Any]]:
    """Who did what, newest first; five of the jobs of each."""
    values = {**vars(asked), "before": before or NEWEST, "limit": limit}
    return [dict(row) for row in connection.execute(AUDIT, values).mappings()]


def list_turns(connection: Connection, workflow: str, first: str, most: int) -> list[KeyTurns]:
    """The keys of a workflow that have unfinished jobs, from ``first`` on."""
    values = {"workflow": workflow, "first": first, "most": most}
    with readable_errors():
        return [KeyTurns(*row) for row in connection.execute(LIST_TURNS, values)]


def set_key_weight(connection: Connection, workflow: str, key: str, weight: int) -> None:
    """So many of its jobs go in each of its turns."""
    with readable_errors():
        connection.execute(SET_KEY_WEIGHT, {"workflow": workflow, "key": key, "weight": weight})


def pause_key(connection: Connection, workflow: str, key: str, seconds: float | None) -> None:
    """Begin no more of its jobs, for so long or until somebody resumes it."""
    with readable_errors():
        connection.execute(PAUSE_KEY, {"workflow": workflow, "key": key, "seconds": seconds})


def resume_key(connection: Connection, workflow: str, key: str) -> bool:
    """False if it was not paused."""
    with readable_errors():
        return bool(connection.execute(RESUME_KEY, {"workflow": workflow, "key": key}).scalar_one())
