"""Whether anybody works, sends and looks after the rest."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text

from pipeline.store.gateway.reading import relay_lag, worker_states

# Whoever leads holds a lock on one of these views; whoever only waits to lead has not been granted it.
LEADS = text("""SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_locks l WHERE l.granted AND l.pid <> pg_backend_pid()
    AND l.relation = CAST('pipeline.' || :view AS regclass)
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))""")
UNSERVED = text("""SELECT ph.queue, count(*) AS jobs
    FROM pipeline.outbox o JOIN pipeline.phases ph ON ph.id = o.phase_id
    WHERE ph.position > 0 AND NOT EXISTS (SELECT 1 FROM pipeline.workers w
        WHERE w.stopped_at IS NULL AND ph.queue = ANY (w.queues) AND pipeline.alive(w.id))
    GROUP BY ph.queue ORDER BY ph.queue""")
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
    unserved: list[Waiting]
    undeclared: list[Waiting]


def health(connection: Connection) -> Health:
    """As it is now."""
    return Health(
        worker_states(connection),
        _leads(connection, "relay_leader"),
        _leads(connection, "maintenance_leader"),
        relay_lag(connection),
        [Waiting._make(row) for row in connection.execute(UNSERVED)],
        [Waiting._make(row) for row in connection.execute(UNDECLARED)],
    )


def _leads(connection: Connection, view: str) -> bool:
    return bool(connection.execute(LEADS, {"view": view}).scalar_one())
