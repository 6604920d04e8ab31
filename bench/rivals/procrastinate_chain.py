"""Procrastinate: three tasks, each defers the next."""

from __future__ import annotations

import os

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.rivals.count import count

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"], min_size=8, max_size=8))


@app.task
async def one(job: int) -> None:
    await two.defer_async(job=job)


@app.task
async def two(job: int) -> None:
    await three.defer_async(job=job)


@app.task
async def three(job: int) -> None:
    count()


def prepare() -> None:
    with app.replace_connector(_sync()) as preparing, preparing.open():
        preparing.schema_manager.apply_schema()


def fill(jobs: int) -> None:
    with app.replace_connector(_sync()) as filling, filling.open():
        one.batch_defer(*({"job": n} for n in range(jobs)))


def _sync() -> SyncPsycopgConnector:
    return SyncPsycopgConnector(conninfo=os.environ["DATABASE_URL"])
