"""Procrastinate: three tasks, each defers the next."""

from __future__ import annotations

import os

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.rivals.count import begin, count

app = App(connector=PsycopgConnector(conninfo=os.environ["PEER_DATABASE_URL"], min_size=8, max_size=8))


@app.task
async def one(job: int) -> None:
    begin()
    await two.defer_async(job=job)


@app.task
async def two(job: int) -> None:
    await three.defer_async(job=job)


@app.task
async def three(job: int) -> None:
    count()


def fill(jobs: int) -> None:
    connector = SyncPsycopgConnector(conninfo=os.environ["PEER_DATABASE_URL"])
    with app.replace_connector(connector) as filling, filling.open():
        if not filling.check_connection():
            filling.schema_manager.apply_schema()
        one.batch_defer(*({"job": n} for n in range(jobs)))
