"""Failed jobs by their cause, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from pipeline.front.api.http.cursors import decode_cursor, encode_cursor, plain_text
from pipeline.store.gateway import reading
from pipeline.store.inspect import NEWEST

MOST = 5000
CAP = 10_000
# Causes that are looked at; there are seldom as many.
MOST_GROUPS = 1000
Sort = Literal["jobs", "newest", "name"]
# What is done with failed jobs; it answers with how many of them.
Act = Callable[[Connection, list[UUID]], int]


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


def groups(
    connection: Connection,
    only: str | None,
    after: tuple[Any, ...] | None,
    limit: int,
    *,
    sort: Sort = "jobs",
    words: str | None = None,
) -> list[dict[str, Any]]:
    """Groups after the place given, those with the most jobs or the newest failures first; ``only`` of one workflow,
    and with these ``words`` in their cause. Each with its place."""
    causes = [(_place(one, sort), one) for one in reading.dead_causes(connection, only, MOST_GROUPS, CAP)]
    wanted = [
        (place, one)
        for place, one in sorted(causes, key=itemgetter(0))
        if (after is None or place > after) and (words is None or words.lower() in one.cause.lower())
    ][:limit]
    places = {one[:3]: place for place, one in wanted}
    found = reading.dead_groups(connection, [one for _, one in wanted], CAP)
    return [
        {
            **one._asdict(),
            "over_time": one.over_time or [],
            "samples": one.samples or [],
            "group": Group(one.workflow, one.phase, one.cause).name,
            "place": places[one[:3]],
        }
        for one in found
    ]


def _place(one: reading.DeadCause, sort: Sort) -> tuple[int, str, str, str]:
    """Where the group stands in the order asked for."""
    first = one.jobs if sort == "jobs" else int(one.last_at.timestamp() * 1000) if sort == "newest" else 0
    return -first, one.workflow, one.phase, one.cause


def jobs_of_group(connection: Connection, group: Group, before: UUID | None, limit: int) -> list[dict[str, Any]]:
    """Newest first."""
    return reading.dead_jobs(connection, **group._asdict(), before=before or NEWEST, limit=limit)


def size(connection: Connection, group: Group) -> int:
    """How many jobs the group has, up to 10,000."""
    found = reading.dead_groups(connection, [reading.DeadCause(*group, 0, datetime.now(UTC))], CAP)
    return found[0].jobs if found else 0


def oldest(connection: Connection, group: Group, limit: int) -> list[UUID]:
    """The jobs of a group that failed first to be submitted."""
    return reading.oldest_dead_jobs(connection, **group._asdict(), limit=limit)


def of_group(connection: Connection, group: Group, limit: int, act: Act) -> tuple[int, bool]:
    """Replay or discard the oldest ``limit`` of a group. Returns how many, and whether the group has more."""
    done = act(connection, oldest(connection, group, limit))
    return done, bool(oldest(connection, group, 1))
