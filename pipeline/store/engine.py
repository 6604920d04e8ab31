"""Connections to PostgreSQL: SQLAlchemy for the user's writes, plain psycopg where every microsecond counts.

All of them are opened by ``dial``: it alone knows of several hosts, of poolers, and of what a session needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_loads
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import Pool

from pipeline.declare.job import decode
from pipeline.settings import without_driver

# A connection outside of any pool, for a thread of its own.
Wire = psycopg.Connection[TupleRow]
Kind = TypeVar("Kind", bound="psycopg.Connection[Any]")

# A connection that RabbitMQ's or the user's network ate must not hang a thread for minutes.
KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "connect_timeout": 10,
    # Keepalives are not sent while data is under way: what nobody acknowledges for so long (milliseconds) is lost.
    "tcp_user_timeout": 15_000,
}
# Of several hosts the one that takes writes. One that is gone without a word must not cost a worker so much time that
# it looks dead on the next.
OF_SEVERAL = {"target_session_attrs": "read-write", "connect_timeout": 2}

# A process that is frozen inside a transaction keeps its rows locked from everybody: the server ends such a session.
IDLE = {"idle_in_transaction_session_timeout": "15s"}
# The engine's statements are fixed and always meant for an index: plan them once, and never from the statistics
# of a table that happened to be empty when the session began.
PLANS = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"}
# The server, too, must notice a client that is gone without a word: until then it holds that worker's lock.
NOTICE = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
}


def engine(url: str, *, size: int = 5, pooled: bool = False) -> Engine:
    """A pool of at most ``2 * size`` connections; broken ones are replaced when they are taken.

    ``pooled``: behind ``url`` is a pooler in transaction mode.
    """
    made = engine_of(
        lambda: dial(psycopg.Connection, url, "pipeline", IDLE, pooled=pooled),
        IDLE if pooled else {},
        pool_size=size,
        max_overflow=size,
        pool_pre_ping=True,
    )
    event.listen(made, "handle_error", _leave_read_only_servers)
    return made


def engine_of(
    creator: Callable[[], psycopg.Connection[Any]],
    each: Mapping[str, str],
    *,
    poolclass: type[Pool] | None = None,
    **options: Any,
) -> Engine:
    """SQLAlchemy's, upon connections of ours. ``each``: settings that every transaction begins with."""
    made = create_engine(
        "postgresql+psycopg://",
        creator=creator,
        poolclass=poolclass,
        hide_parameters=True,
        **options,
    )
    if each:
        event.listen(made, "begin", lambda connection: _bound(connection, each))
    return made


def _bound(connection: Connection, each: Mapping[str, str]) -> None:
    connection.exec_driver_sql(*_settings(each, "true"))


def _leave_read_only_servers(context: ExceptionContext) -> None:
    """A session that takes no writes may be one of a server that lost its part in a failover: it is not used again."""
    if getattr(context.original_exception, "sqlstate", None) == "25006":
        context.is_disconnect = True


def connect(dsn: str, name: str, *, pooled: bool = False) -> Wire:
    """One connection outside of any pool, committing each statement by itself."""
    return dial(psycopg.Connection, dsn, f"pipeline {name}", {**PLANS, **NOTICE}, pooled=pooled, autocommit=True)


def dial(
    kind: type[Kind], address: str, name: str, settings: Mapping[str, str], *, pooled: bool = False, **options: Any
) -> Kind:
    """Connect to the host that takes writes, and make the session ours.

    The settings are made once connected, because poolers refuse or drop them in the greeting. ``pooled``: behind the
    address is a pooler in transaction mode, where the next statement may meet another session: nothing is set, and
    no statement is prepared.
    """
    dsn = without_driver(address)
    if pooled:
        options["prepare_threshold"] = None
    connection: Kind = kind.connect(dsn, application_name=name, **{**KEEPALIVE, **_of_several(dsn)}, **options)
    set_json_loads(decode, connection)
    if not pooled:
        _keep(connection, settings)
    return connection


def _keep(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    """For as long as the session lives."""
    try:
        connection.execute(*_settings(settings, "false"))
        if not connection.autocommit:
            connection.commit()
    except BaseException:
        connection.close()
        raise


def _of_several(dsn: str) -> Mapping[str, Any]:
    """What several hosts need, unless the address says it."""
    said = conninfo_to_dict(dsn)
    if "," not in str(said.get("host") or said.get("hostaddr") or ""):
        return {}
    return {name: said.get(name, value) for name, value in OF_SEVERAL.items()}


def _settings(settings: Mapping[str, str], local: str) -> tuple[str, tuple[str, ...]]:
    """One statement for all of them; ``local``: until the transaction ends."""
    calls = ", ".join([f"pg_catalog.set_config(%s, %s, {local})"] * len(settings))
    return f"SELECT {calls}", tuple(part for pair in settings.items() for part in pair)
