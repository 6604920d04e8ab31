"""Client processes that submit single jobs as fast as they can, each on a connection of its own.

Both kinds go through SQLAlchemy, one transaction each, as an application does that has something else to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from time import monotonic, sleep

import orjson
from sqlalchemy import Connection, create_engine, text

from bench import lab
from pipeline import submit

# What a submit has to write at least: the job, and that it is to be sent.
PLAIN = text("""
    WITH job AS (INSERT INTO plain_jobs (workflow, phase, body)
                 VALUES (:workflow, 'one', CAST(:body AS jsonb)) RETURNING id, phase)
    INSERT INTO plain_outbox (job_id, phase) SELECT id, phase FROM job""")
WARM_UP = 10
Clients = Callable[[int, float], float]


@contextmanager
def clients(kind: str, place: lab.Place, count: int) -> Iterator[Clients]:
    """Call it with how many of them submit, and for how long: it returns submits a second."""
    # Not forked from here: they would share this process's connections.
    context = get_context("forkserver")
    context.set_forkserver_preload(["bench.clients", "pipeline", "sqlalchemy.dialects.postgresql.psycopg"])
    pipes = []
    for _ in range(count):
        ours, theirs = context.Pipe()
        context.Process(target=_client, args=(kind, place.url, theirs), daemon=True).start()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()

    def go(busy: int, seconds: float) -> float:
        begin = monotonic() + 0.1
        for pipe in pipes[:busy]:
            pipe.send((begin, begin + seconds))
        return sum(int(pipe.recv()) for pipe in pipes[:busy]) / seconds

    try:
        yield go
    finally:
        for pipe in pipes:
            pipe.send(None)


def _client(kind: str, url: str, orders: Pipe) -> None:
    work = {"pipeline": _ours, "plain": _plain}[kind]
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))

    def once() -> None:
        with engine.begin() as connection:
            work(connection)

    for _ in range(WARM_UP):
        once()
    orders.send("ready")
    while order := orders.recv():
        begin, end = order
        sleep(max(0.0, begin - monotonic()))
        submitted = 0
        while monotonic() < end:
            once()
            submitted += 1
        orders.send(submitted)


def _ours(connection: Connection) -> None:
    submit(connection, "busy", lab.BODY)


def _plain(connection: Connection) -> None:
    connection.execute(PLAIN, {"workflow": "busy", "body": orjson.dumps(lab.BODY).decode()})
