"""What a doctor asks: who works, who leads, what nobody takes up, and what keeps rows from being vacuumed."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text

from pipeline.store.gateway import reading

VERSIONS = text("""SELECT w.version, count(*) AS n FROM pipeline.workers w
    WHERE w.stopped_at IS NULL AND pipeline.alive(w.id) GROUP BY w.version ORDER BY w.version""")
FORGOTTEN = text("""SELECT DISTINCT ph.workflow FROM pipeline.phases ph WHERE ph.position > 0 AND NOT EXISTS (
        SELECT 1 FROM pipeline.workers w JOIN pipeline.phases o ON o.workflow = ph.workflow AND o.queue = ANY (w.queues)
        WHERE w.stopped_at IS NULL AND pipeline.alive(w.id)) ORDER BY ph.workflow""")
SNAPSHOTS = text("""SELECT a.pid, coalesce(nullif(a.application_name, ''), a.usename, 'unknown') AS name,
    extract(epoch FROM now() - a.xact_start)::float8 AS age FROM pg_catalog.pg_stat_activity a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_xmin IS NOT NULL
      AND a.xact_start < now() - make_interval(secs => :longer) ORDER BY a.xact_start LIMIT 10""")
# Whoever leads holds a lock on one of these views; whoever only waits to lead has not been granted it.
LEADS = text("""SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_locks l WHERE l.granted AND l.pid <> pg_backend_pid()
    AND l.relation = CAST('pipeline.' || :view AS regclass)
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))""")
UNSERVED = text("""SELECT ph.queue, count(*) AS jobs
    FROM pipeline.outbox o JOIN pipeline.phases ph ON ph.id = o.phase_id
    WHERE ph.position > 0 AND NOT EXISTS (SELECT 1 FROM pipeline.workers w
        WHERE w.stopped_at IS NULL AND ph.queue = ANY (w.queues) AND w.draining_at IS NULL AND pipeline.alive(w.id))
    GROUP BY ph.queue ORDER BY ph.queue""")
# Of living workers; while nothing is unconfirmed that is the heartbeat before the last.
UNCONFIRMED = text("""SELECT coalesce(max(extract(epoch FROM now() - w.confirmed_at)), 0) FROM pipeline.workers w
    WHERE w.stopped_at IS NULL AND pipeline.alive(w.id)""")
UNDECLARED = text("SELECT queue, jobs FROM pipeline.undeclared()")


class Waiting(NamedTuple):
    """Jobs that have not ended, of one queue."""

    queue: str
    jobs: int


class Health(NamedTuple):
    """Workers by state, whether the relay and maintenance have a leader, and jobs that nobody takes up."""

    workers: dict[str, int]
    relay: bool
    maintenance: bool
    relay_lag: float
    unconfirmed: float
    unserved: list[Waiting]
    undeclared: list[Waiting]


class Snapshot(NamedTuple):
    """A session that keeps rows from being vacuumed."""

    pid: int
    name: str
    age: float


def versions(connection: Connection) -> dict[str, int]:
    """How many living workers run each version of the code."""
    return {row.version: row.n for row in connection.execute(VERSIONS)}


def forgotten(connection: Connection) -> list[str]:
    """Workflows that PostgreSQL knows and no living worker serves."""
    return list(connection.execute(FORGOTTEN).scalars())


def snapshots(connection: Connection, longer: float) -> list[Snapshot]:
    """Of transactions that have been open for longer than so many seconds."""
    return [Snapshot._make(row) for row in connection.execute(SNAPSHOTS, {"longer": longer})]


def health(connection: Connection) -> Health:
    """As it is now."""
    return Health(
        reading.worker_states(connection),
        _leads(connection, "relay_leader"),
        _leads(connection, "maintenance_leader"),
        reading.relay_lag(connection),
        float(connection.execute(UNCONFIRMED).scalar_one()),
        [Waiting._make(row) for row in connection.execute(UNSERVED)],
        [Waiting._make(row) for row in connection.execute(UNDECLARED)],
    )


def _leads(connection: Connection, view: str) -> bool:
    return bool(connection.execute(LEADS, {"view": view}).scalar_one())
