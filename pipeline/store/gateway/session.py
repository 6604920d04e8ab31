"""The server, the session and its bounds; and statements of the application's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, text

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

# Statements of the front are meant for an index. A plan made from old statistics must not read a whole table.
FRONT = """SET LOCAL statement_timeout = '5s'; SET LOCAL lock_timeout = '3s';
    SET LOCAL enable_seqscan = off; SET LOCAL jit = off"""
TERMINATE = text("SELECT pg_terminate_backend(:pid)")
CLOCK = "SELECT clock_timestamp()"
# A cluster keeps its identifier for life, a database its oid; together they name it wherever it is reached from.
IDENTITY = """SELECT c.system_identifier, d.oid FROM pg_control_system() c, pg_database d
    WHERE d.datname = current_database()"""
ADDRESS = "SELECT inet_server_addr(), inet_server_port(), oid FROM pg_database WHERE datname = current_database()"
SERVER = text("SELECT current_setting('server_version_num')::int, extract(epoch FROM clock_timestamp())")
DURABLE = text("SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'")

# Those of physical replication. A backup that is being made is no standby.
STANDBYS = text("""SELECT count(*), current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local')
    FROM pg_stat_replication r WHERE r.application_name <> 'pg_basebackup' AND NOT EXISTS (
        SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')""")


class Server(NamedTuple):
    """The version as PostgreSQL counts it (160004), and its clock in seconds since 1970."""

    version: int
    now: float


def bound_the_front(connection: Connection) -> None:
    """Until the transaction ends no statement takes longer than five seconds, and none reads a whole table."""
    connection.exec_driver_sql(FRONT)


def bound_lock_waits(connection: Connection, milliseconds: int) -> None:
    """Until the transaction ends a row that somebody else holds is not waited for any longer."""
    connection.execute(text(f"SET LOCAL lock_timeout = {milliseconds:d}"))


def terminate(connection: Connection, pid: int) -> None:
    """End another session: its transaction is rolled back and its locks go."""
    connection.execute(TERMINATE, {"pid": pid})


def clock(connection: Wire) -> datetime:
    """PostgreSQL's clock, not the beginning of the transaction."""
    row = connection.execute(CLOCK).fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment


def identity(connection: Wire) -> tuple[Any, ...] | None:
    """What names this database for good. InsufficientPrivilege for a role that may not know."""
    return connection.execute(IDENTITY).fetchone()


def address(connection: Wire) -> tuple[Any, ...] | None:
    """Where this database is reached, for such a role."""
    return connection.execute(ADDRESS).fetchone()


def server(connection: Connection) -> Server:
    """What this server is."""
    version, now = connection.execute(SERVER).one()
    return Server(version, float(now))


def commits_durably(connection: Connection) -> bool:
    """Whether a commit survives the loss of power."""
    return bool(connection.execute(DURABLE).scalar_one())


class Standbys(NamedTuple):
    """How many follow this server, and whether a commit waits for one of them."""

    following: int
    awaited: bool


def standbys(connection: Connection) -> Standbys:
    """Those that the server shows to everybody."""
    return Standbys(*connection.execute(STANDBYS).one())


def read(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A query of the application's own."""
    return [dict(row) for row in connection.execute(text(statement), dict(parameters)).mappings()]


def write(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> None:
    """A statement of the application's own."""
    connection.execute(text(statement), dict(parameters))
