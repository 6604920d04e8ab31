"""Connections to PostgreSQL: SQLAlchemy for the user's writes, plain psycopg where every microsecond counts."""

from __future__ import annotations

import psycopg
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_loads
from sqlalchemy import Engine, ExceptionContext, create_engine, event

from pipeline.declare.job import decode

# A connection outside of any pool, for a thread of its own.
Wire = psycopg.Connection[TupleRow]

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


# A process that is frozen inside a transaction keeps its rows locked from everybody: the server ends such a session.
IDLE = "-c idle_in_transaction_session_timeout=15s"


def engine(url: str, *, size: int = 5) -> Engine:
    """A pool of at most ``2 * size`` connections; broken ones are replaced when they are taken."""
    made = create_engine(
        url,
        pool_size=size,
        max_overflow=size,
        pool_pre_ping=True,
        hide_parameters=True,
        json_deserializer=decode,
        connect_args={**KEEPALIVE, "application_name": "pipeline", "options": IDLE},
    )
    event.listen(made, "handle_error", _leave_read_only_servers)
    return made


def _leave_read_only_servers(context: ExceptionContext) -> None:
    """A session that takes no writes may be one of a server that lost its part in a failover: it is not used again."""
    if getattr(context.original_exception, "sqlstate", None) == "25006":
        context.is_disconnect = True


# The engine's statements are fixed and always meant for an index: plan them once, and never from the statistics
# of a table that happened to be empty when the session began.
PLANS = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off"
# The server, too, must notice a client that is gone without a word: until then it holds that worker's lock.
NOTICE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=15s"


def connect(dsn: str, name: str) -> Wire:
    """One connection outside of any pool, committing each statement by itself."""
    connection = psycopg.connect(
        dsn,
        autocommit=True,
        application_name=f"pipeline {name}",
        options=f"{PLANS} {NOTICE}",
        **KEEPALIVE,  # type: ignore[arg-type]
    )
    set_json_loads(decode, connection)
    return connection
