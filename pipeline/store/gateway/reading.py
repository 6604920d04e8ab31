"""Statistics and lists for people and for Prometheus. Costs are bounded: by index, and counted up to a limit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from pipeline.store.inspect import ROW

PHASES = text("""SELECT queue, s.workflow, s.phase, waiting, queued, running, retryable, failed, s.pool, busy, error,
    s.paused_until IS NOT NULL AS paused, nullif(s.paused_until, 'infinity') AS paused_until, oldest_seconds,
    ph.throttle_count, ph.throttle_seconds, ph.pool_is_set, ph.declared_pool, ph.rate_is_set,
    ph.declared_throttle_count, ph.declared_throttle_seconds
    FROM pipeline.stats(:cap) s JOIN pipeline.phases ph USING (queue) ORDER BY s.workflow, ph.position""")
QUEUES = text("SELECT queue FROM pipeline.phases ORDER BY workflow, position")
COUNTERS = text("SELECT name, n FROM pipeline.counters ORDER BY name")
RATE_LIMITS = text("""SELECT name, rate, (paused_until > now())::int AS paused,
    CASE WHEN next_at > now() THEN extract(epoch FROM next_at - now())::float8 ELSE 0 END AS ahead
    FROM pipeline.rate_limits ORDER BY name LIMIT 1000""")
WORKERS = text("""SELECT state, count(*) AS n, sum(threads) AS threads, max(age) AS age, sum(stuck) AS stuck
    FROM (SELECT pipeline.worker_state(w) AS state, threads, stuck,
           extract(epoch FROM now() - heartbeat_at)::float8 AS age FROM pipeline.workers w WHERE stopped_at IS NULL) w
    GROUP BY state""")
RELAY_LAG = text("SELECT pipeline.relay_lag()")
RECENT = text("SELECT queue, outcome, n, seconds FROM pipeline.attempts_recent(60, 5000)")
MOMENT = text("""SELECT now() AS at, pipeline.relay_lag() AS lag,
    (SELECT count(*) FROM (SELECT 1 FROM pipeline.batches WHERE completed_at IS NULL LIMIT :cap) b) AS batches""")
STATES = text("""SELECT pipeline.worker_state(w) AS state, count(*) AS n
    FROM pipeline.workers w WHERE stopped_at IS NULL GROUP BY 1""")
HISTORY = """SELECT coalesce(json_agg(h), '[]')::text FROM (
    SELECT at, queue, waiting, queued, running, dead, succeeded, retried, crashed, waited, failed, cancelled
    FROM {table}
    WHERE at > now() - make_interval(secs => :hours * 3600)
      AND (CAST(:workflow AS text) IS NULL OR split_part(queue, '.', 1) = :workflow)
      AND (CAST(:queue AS text) IS NULL OR queue = :queue)
    ORDER BY at, queue LIMIT 20000) h"""
MINUTES, QUARTERS = (text(HISTORY.format(table=table)) for table in ("pipeline.rollups", "pipeline.rollup_quarters"))
DEAD_CAUSES = text("SELECT workflow, phase, cause, jobs, last_at FROM pipeline.dead_groups(:only, :limit, :cap)")
DEAD_GROUPS = text("""SELECT a.workflow, a.phase, a.cause, g.jobs, g.first_at, g.last_at, g.over_time, g.samples
    FROM unnest(CAST(:workflows AS text[]), CAST(:phases AS text[]), CAST(:causes AS text[]))
         WITH ORDINALITY AS a(workflow, phase, cause, place)
    CROSS JOIN LATERAL pipeline.dead_group(a.workflow, a.phase, a.cause, :cap, :newest) g
    WHERE g.jobs > 0 ORDER BY a.place""")
OF_GROUP = "workflow = :workflow AND failed_in = :phase AND cause = :cause"
DEAD_JOBS = text(f"SELECT {ROW} FROM pipeline.jobs WHERE {OF_GROUP} AND id < :before ORDER BY id DESC LIMIT :limit")  # noqa: S608  fixed columns
OLDEST_DEAD = text(f"SELECT id FROM pipeline.jobs WHERE {OF_GROUP} ORDER BY id LIMIT :limit")  # noqa: S608  fixed condition

SIGNALS = text("""SELECT
    (SELECT coalesce(extract(epoch FROM now() - min(s.look_at)), 0)::float8 FROM pipeline.schedules s
     WHERE s.look_at > '-infinity' AND s.look_at <= now()) AS schedule_lag,
    (SELECT coalesce(extract(epoch FROM now() - min(a.xact_start)), 0)::float8 FROM pg_catalog.pg_stat_activity a
     WHERE a.datname = current_database() AND a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid()
    ) AS snapshot_age""")
LEADERS = text("""SELECT v.name, max(extract(epoch FROM now() - a.xact_start))::float8 AS age, count(l.pid) > 0 AS led
    FROM (VALUES ('relay', 'pipeline.relay_leader'), ('maintenance', 'pipeline.maintenance_leader')) v(name, view)
    LEFT JOIN pg_catalog.pg_locks l ON l.relation = CAST(v.view AS regclass) AND l.granted AND l.pid <> pg_backend_pid()
        AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
    LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid GROUP BY v.name ORDER BY v.name""")


class Signals(NamedTuple):
    """How late the oldest schedule is, and how old the oldest snapshot of the database is, in seconds."""

    schedule_lag: float
    snapshot_age: float


class Leader(NamedTuple):
    """Whether somebody leads, and since how many seconds; None where this role may not know."""

    name: str
    age: float | None
    led: bool


class PhaseNow(NamedTuple):
    """One phase now. ``waiting`` is by reason; ``busy`` and ``error`` count processors of its ``pool``.

    Paused without a ``paused_until``: until somebody resumes it. ``pool_is_set``: an operator's, not the declared one.
    """

    queue: str
    workflow: str
    phase: str
    waiting: dict[str, int]
    queued: int
    running: int
    retryable: int
    failed: int
    pool: int | None
    busy: int
    error: int
    paused: bool
    paused_until: datetime | None
    oldest_seconds: float | None
    throttle_count: int | None = None
    throttle_seconds: float | None = None
    pool_is_set: bool = False
    declared_pool: int | None = None
    rate_is_set: bool = False
    declared_throttle_count: int | None = None
    declared_throttle_seconds: float | None = None


class WorkersNow(NamedTuple):
    """Worker processes in one state: how many, their threads, their oldest heartbeat, their stuck threads."""

    state: str
    n: int
    threads: int
    age: float
    stuck: int


class RateLimitNow(NamedTuple):
    """A rate limit: calls a second, 1 while it is paused, and how many seconds ahead permits are given out."""

    name: str
    rate: float | None
    paused: int | None
    ahead: float


class Recent(NamedTuple):
    """Attempts of a phase that ended one way in the last ``seconds``."""

    queue: str
    outcome: str
    n: int
    seconds: float


class Moment(NamedTuple):
    """When it was looked at, how late the relay is, and how many batches are open."""

    at: datetime
    relay_lag: float
    open_batches: int


class DeadCause(NamedTuple):
    """How many jobs failed in the same phase for the same cause, and when one did so last."""

    workflow: str
    phase: str
    cause: str
    jobs: int
    last_at: datetime


class DeadGroup(NamedTuple):
    """Jobs that failed in the same phase for the same cause; ``over_time`` and ``samples`` are JSON."""

    workflow: str
    phase: str
    cause: str
    jobs: int
    first_at: datetime
    last_at: datetime
    over_time: list[dict[str, Any]] | None
    samples: list[dict[str, Any]] | None


def queues(connection: Connection) -> list[str]:
    """All phases, each as ``workflow.phase``, in the order of their chains."""
    return list(connection.execute(QUEUES).scalars())


def phases(connection: Connection, cap: int) -> list[PhaseNow]:
    """Every phase, in the order of its workflow; counts stop at ``cap``."""
    return [PhaseNow._make(row) for row in connection.execute(PHASES, {"cap": cap})]


def workers(connection: Connection) -> list[WorkersNow]:
    """Workers that have not signed off, by state."""
    return [WorkersNow._make(row) for row in connection.execute(WORKERS)]


def worker_states(connection: Connection) -> dict[str, int]:
    """How many workers are in each state."""
    return {row.state: row.n for row in connection.execute(STATES)}


def rate_limits(connection: Connection) -> list[RateLimitNow]:
    """Up to a thousand, by name."""
    return [RateLimitNow._make(row) for row in connection.execute(RATE_LIMITS)]


def signals(connection: Connection) -> Signals:
    """As they are now."""
    return Signals._make(connection.execute(SIGNALS).one())


def leaders(connection: Connection) -> list[Leader]:
    """Of maintenance and of the relay."""
    return [Leader._make(row) for row in connection.execute(LEADERS)]


def counters(connection: Connection) -> dict[str, int]:
    """What all workers have counted, by name."""
    return {name: int(n) for name, n in connection.execute(COUNTERS)}


def relay_lag(connection: Connection) -> float:
    """How many seconds late the relay is with what could be sent now."""
    return float(connection.execute(RELAY_LAG).scalar_one())


def recent_attempts(connection: Connection) -> list[Recent]:
    """What ended in the last minute."""
    return [Recent._make(row) for row in connection.execute(RECENT)]


def moment(connection: Connection, cap: int) -> Moment:
    """The rest of the statistics, at PostgreSQL's time."""
    return Moment._make(connection.execute(MOMENT, {"cap": cap}).one())


def history(connection: Connection, hours: float, workflow: str | None, queue: str | None, *, quarters: bool) -> str:
    """Rollups as JSON, oldest first: a row a minute, or a quarter of an hour.

    PostgreSQL writes it: to take thousands of rows apart and put them together again would cost more than reading them.
    """
    values = {"hours": hours, "workflow": workflow, "queue": queue}
    return str(connection.execute(QUARTERS if quarters else MINUTES, values).scalar_one())


def dead_causes(connection: Connection, only: str | None, limit: int, cap: int) -> list[DeadCause]:
    """All groups, in the order of their names; ``only`` those of one workflow."""
    return [DeadCause._make(row) for row in connection.execute(DEAD_CAUSES, {"only": only, "limit": limit, "cap": cap})]


def dead_groups(connection: Connection, causes: list[DeadCause], cap: int) -> list[DeadGroup]:
    """These groups as they are, in this order; of many fewer of their newest jobs are looked at."""
    values = {
        "workflows": [one.workflow for one in causes],
        "phases": [one.phase for one in causes],
        "causes": [one.cause for one in causes],
        "newest": max(min(200, 5000 // max(len(causes), 1)), 3),
        "cap": cap,
    }
    return [DeadGroup._make(row) for row in connection.execute(DEAD_GROUPS, values)]


def dead_jobs(
    connection: Connection, *, workflow: str, phase: str, cause: str, before: UUID, limit: int
) -> list[dict[str, Any]]:
    """The jobs of a group, newest first, as ``inspect.jobs`` shows them."""
    values = {"workflow": workflow, "phase": phase, "cause": cause, "before": before, "limit": limit}
    return [dict(row) for row in connection.execute(DEAD_JOBS, values).mappings()]


def oldest_dead_jobs(connection: Connection, *, workflow: str, phase: str, cause: str, limit: int) -> list[UUID]:
    """The jobs of a group that were submitted first."""
    values = {"workflow": workflow, "phase": phase, "cause": cause, "limit": limit}
    return list(connection.execute(OLDEST_DEAD, values).scalars())
