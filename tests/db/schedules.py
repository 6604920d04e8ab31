"""Schedules as the tests make and look at them; ``look`` is what the leader of maintenance does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from pipeline.maintenance.schedules import Schedules
from pipeline.store.engine import Wire
from tests.db import steps
from tests.db.steps import Db, Row

LISTED = "SELECT * FROM pipeline.list_schedules()"
MINUTE = 60.0
HOUR = 3600.0
ADD = """SELECT pipeline.schedule(%s, %s, p_cron => %s, p_every => make_interval(secs => %s::float8), p_timezone => %s, p_body => %s,
    p_overlap => %s, p_catch_up => %s, p_catch_up_for => make_interval(secs => %s::float8), p_priority => %s, p_tags => %s)"""


def add(db: Db, name: str = "often", workflow: str = "single", **named: Any) -> None:
    """Options: cron, every (seconds), timezone, body, overlap, catch_up, catch_up_for (seconds), priority, tags."""
    if "cron" not in named:
        named.setdefault("every", MINUTE)
    values = [named.pop(name, None) for name in ("cron", "every", "timezone")]
    body, overlap = named.pop("body", {}), named.pop("overlap", "allow")
    values += [Jsonb(body), overlap, named.pop("catch_up", None), named.pop("catch_up_for", None)]
    db.execute(ADD, (workflow, name, *values, named.pop("priority", 0), named.pop("tags", None)))
    assert not named, f"unknown options {named}"


def one(db: Db, name: str = "often") -> Row:
    [row] = steps.rows(db, "SELECT * FROM pipeline.schedules WHERE name = %s", name)
    return row


def look(wire: Wire, most: int = 50) -> float:
    """Until nothing is due; the seconds until something is."""
    leader = Schedules()
    for _ in range(most):
        if pause := leader.look(wire):
            return pause
    raise AssertionError(f"something is still due after {most} looks")


def planned(db: Db, wire: Wire, name: str = "often", **named: Any) -> datetime:
    """A new schedule, and its first moment."""
    add(db, name, **named)
    look(wire)
    found: datetime = one(db, name)["next_at"]
    return found


def missed(db: Db, name: str = "often", seconds: float = HOUR) -> datetime:
    """Nobody has looked for so long: its next moment is the first one since then."""
    row = one(db, name)
    every = row["every"].total_seconds()
    since = steps.one(db, "SELECT now()") - timedelta(seconds=seconds)
    first = datetime.fromtimestamp((since.timestamp() // every + 1) * every, UTC)
    db.execute(
        "UPDATE pipeline.schedules SET next_at = %s, planned = true, revision = revision + 1 WHERE id = %s",
        (first, row["id"]),
    )
    return first


def jobs(db: Db, name: str = "often") -> list[Row]:
    """In the order in which they were submitted."""
    return steps.rows(db, "SELECT * FROM pipeline.jobs WHERE tags @> ARRAY[%s] ORDER BY id", f"schedule:{name}")


def moments(db: Db, name: str = "often") -> list[datetime]:
    """Of its jobs."""
    found = "SELECT pipeline.moment(id) AS at FROM pipeline.jobs WHERE tags @> ARRAY[%s] ORDER BY 1"
    return [row["at"] for row in steps.rows(db, found, f"schedule:{name}")]


def end(db: Db, job: UUID) -> None:
    steps.one(db, "SELECT pipeline.cancel(%s)", job)


@contextmanager
def held(other: Db, statement: str, *values: Any) -> Iterator[None]:
    """An application has something locked."""
    with other.transaction():
        other.execute(statement, values)
        yield


def now(db: Db) -> datetime:
    found: datetime = steps.one(db, "SELECT now()")
    return found


def steer(db: Db, what: str, name: str = "often") -> Any:
    return steps.one(db, f"SELECT pipeline.{what}('single', %s)", name)


def skip(db: Db, wire: Wire, name: str = "often") -> None:
    """The next moment comes: none that has a job already."""
    row = one(db, name)
    db.execute("UPDATE pipeline.keys SET key = key || 'x'")
    missed(db, name, row["every"].total_seconds())
    look(wire)
