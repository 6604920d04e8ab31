"""The rates of rate limits as the code declares them, and what operators see and change of all rate limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from pipeline.declare.registry import DeclaredWorkflow

DECLARE = text("SELECT pipeline.declare_rate_limit(:name, :rate, :burst)")
DECLARED = text("""SELECT name, declared_rate, declared_burst FROM pipeline.rate_limits
    WHERE name = ANY (:names) AND declared_rate IS NOT NULL""")
# Python has no infinity.
LIST = text("""SELECT name, rate, burst, declared_rate, rate_is_set, template, paused_until IS NOT NULL AS paused,
    nullif(paused_until, 'infinity') AS paused_until, pause_reason, waiting, breaker, failures, open_until, last_error
    FROM pipeline.list_limits(:after, :most)""")
SET = text("SELECT pipeline.set_rate_limit(:name, :rate, :burst)")
UNSET = text("SELECT pipeline.unset_rate_limit(:name)")
PAUSE = text("""SELECT pipeline.pause_rate_limit(:name,
    coalesce(now() + make_interval(secs => CAST(:seconds AS double precision)), 'infinity'), 'paused')""")
RESUME = text("""WITH was AS MATERIALIZED (
    SELECT count(*) AS paused FROM pipeline.rate_limits WHERE name = :name AND paused_until > now())
    SELECT was.paused > 0, pipeline.resume_rate_limit(:name)::text FROM was""")


class LimitNow(NamedTuple):
    """A rate limit, and the breaker of its name: 'closed', 'open' or 'half-open'.

    ``waiting``: jobs at the gate, up to 1,000.
    """

    name: str
    rate: float | None
    burst: float | None
    declared_rate: float | None
    rate_is_set: bool
    template: str | None
    paused: bool
    paused_until: datetime | None
    pause_reason: str | None
    waiting: int
    breaker: str | None
    failures: int | None
    open_until: datetime | None
    last_error: str | None


def declared(workflows: Iterable[DeclaredWorkflow]) -> dict[str, tuple[str, tuple[float, float] | None]]:
    """By name, the workflow that declares it, and its rate and bucket. ValueError if two phases differ."""
    found: dict[str, tuple[str, tuple[float, float] | None]] = {}
    for workflow in workflows:
        for limit in (phase.spec.limit for phase in workflow.phases):
            if limit is None:
                continue
            owner, known = found.get(limit.name, (workflow.name, None))
            if None not in (known, limit.declared) and known != limit.declared:
                raise ValueError(
                    f"limit {limit.name!r} has another rate in workflow {workflow.name} than in {owner}: declare "
                    "it once, and name it elsewhere"
                )
            found[limit.name] = (owner, known or limit.declared)
    return found


def declare(connection: Connection, workflows: Iterable[DeclaredWorkflow]) -> None:
    """Put the declared rates in force. A name that is used without a rate keeps the one that another declares."""
    named = declared(workflows)
    rows = [{"name": name, "rate": rate[0], "burst": rate[1]} for name, (_, rate) in sorted(named.items()) if rate]
    if rows:
        connection.execute(DECLARE, rows)


def differences(
    connection: Connection, workflows: Iterable[DeclaredWorkflow]
) -> Iterator[tuple[str, None, str, object, object]]:
    """Where the database has another declared rate."""
    code = declared(workflows)
    rows = connection.execute(DECLARED, {"names": list(code)})
    database = {name: (rate, burst) for name, rate, burst in rows}
    for name, (workflow, rate) in sorted(code.items()):
        if rate is not None and database.get(name) != rate:
            yield workflow, None, f"limit {name}", _said(database.get(name)), _said(rate)


def _said(rate: tuple[float, float] | None) -> str | None:
    return None if rate is None else f"{rate[0]:g}/s, at most {rate[1]:g} at once"


def list_limits(connection: Connection, after: str, most: int) -> list[LimitNow]:
    """In the order of their names."""
    return [LimitNow._make(row) for row in connection.execute(LIST, {"after": after, "most": most})]


def set_limit(connection: Connection, name: str, rate: float | None, burst: float | None) -> None:
    """Another rate than the code's; None: no rate. It stays until ``unset_limit``."""
    connection.execute(SET, {"name": name, "rate": rate, "burst": burst})


def unset_limit(connection: Connection, name: str) -> bool:
    """The declared rate again. False if there is no such rate limit."""
    return bool(connection.execute(UNSET, {"name": name}).scalar_one())


def pause_limit(connection: Connection, name: str, seconds: float | None) -> None:
    """Hold its jobs at the gate for so long, or until somebody resumes it; a longer pause stands."""
    connection.execute(PAUSE, {"name": name, "seconds": seconds})


def resume_limit(connection: Connection, name: str) -> bool:
    """End its pause, also one of its breaker: the next job probes then. False if it was not paused."""
    return bool(connection.execute(RESUME, {"name": name}).one()[0])
