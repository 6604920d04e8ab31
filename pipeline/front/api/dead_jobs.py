"""Failed jobs by their cause, in PostgreSQL."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from pipeline.front.api.cursors import decode_cursor, encode_cursor, plain_text
from pipeline.store.inspect import NEWEST, ROW

MOST = 5000
CAP = 10_000


class Group(NamedTuple):
    """Jobs that failed in the same phase for the same cause."""

    workflow: str
    phase: str
    cause: str

    @property
    def name(self) -> str:
        """How the group is called by those who ask for it."""
        return encode_cursor(*self)

    @classmethod
    def named(cls, name: str) -> Group:
        """The group of that name; raises ``Problem`` if none can be called so."""
        found = decode_cursor(name, plain_text, plain_text, plain_text)
        assert found is not None
        return cls(*found)


OF_GROUP = "workflow = :workflow AND failed_in = :phase AND cause = :cause"
GROUPS = text("SELECT * FROM pipeline.dead_groups(:only, :workflow, :phase, :cause, :limit, :cap)")
JOBS = text(f"SELECT {ROW} FROM pipeline.jobs WHERE {OF_GROUP} AND id < :before ORDER BY id DESC LIMIT :limit")  # noqa: S608
OLDEST = text(f"SELECT id FROM pipeline.jobs WHERE {OF_GROUP} ORDER BY id LIMIT :limit")  # noqa: S608
REPLAY = text("SELECT count(*) FROM pipeline.replay_many(CAST(:ids AS uuid[]), :rate)")
DISCARD = text("""SELECT count(*) FILTER (WHERE pipeline.discard(d.id, :reason))
    FROM (SELECT unnest(CAST(:ids AS uuid[])) AS id ORDER BY 1) d""")


def groups(connection: Connection, only: str | None, after: tuple[Any, ...] | None, limit: int) -> list[dict[str, Any]]:
    """Groups in the order of their names, after the one given; ``only`` those of one workflow."""
    workflow, phase, cause = after or (None, None, None)
    values = {"only": only, "workflow": workflow, "phase": phase, "cause": cause, "limit": limit, "cap": CAP}
    rows = [dict(row) for row in connection.execute(GROUPS, values).mappings()]
    for row in rows:
        row["group"] = Group(row["workflow"], row["phase"], row["cause"]).name
        row["samples"] = row["samples"] or []
        row["over_time"] = row["over_time"] or []
    return rows


def jobs_of_group(connection: Connection, group: Group, before: UUID | None, limit: int) -> list[dict[str, Any]]:
    """Newest first."""
    values = {**group._asdict(), "before": before or NEWEST, "limit": limit}
    return [dict(row) for row in connection.execute(JOBS, values).mappings()]


def oldest(connection: Connection, group: Group, limit: int) -> list[UUID]:
    """The jobs of a group that failed first to be submitted."""
    return list(connection.execute(OLDEST, {**group._asdict(), "limit": limit}).scalars())


def replay(connection: Connection, ids: list[UUID], per_second: float | None) -> int:
    """Start failed jobs again, in this order and at this rate. Returns how many were failed and did."""
    return int(connection.execute(REPLAY, {"ids": ids, "rate": per_second}).scalar_one())


def discard(connection: Connection, ids: list[UUID], reason: str) -> int:
    """Take failed jobs off the dead letters. Returns how many were failed."""
    return int(connection.execute(DISCARD, {"ids": ids, "reason": reason}).scalar_one())


def replay_group(connection: Connection, group: Group, limit: int, per_second: float | None) -> tuple[int, bool]:
    """The oldest ``limit`` of a group start again. Returns how many did, and whether the group has more."""
    done = replay(connection, oldest(connection, group, limit), per_second)
    return done, bool(oldest(connection, group, 1))


def discard_group(connection: Connection, group: Group, limit: int, reason: str) -> tuple[int, bool]:
    """The oldest ``limit`` of a group are given up. Returns how many were, and whether the group has more."""
    done = discard(connection, oldest(connection, group, limit), reason)
    return done, bool(oldest(connection, group, 1))
