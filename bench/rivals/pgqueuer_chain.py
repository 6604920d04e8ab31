"""PgQueuer: three entrypoints, each enqueues the next."""

from __future__ import annotations

import asyncio
import os

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.rivals.count import count


async def _queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))


async def main() -> None:
    sending = await _queries()
    consumer = PgQueuer(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))

    @consumer.entrypoint("one")
    async def one(job: Job) -> None:
        await sending.enqueue("two", job.payload)

    @consumer.entrypoint("two")
    async def two(job: Job) -> None:
        await sending.enqueue("three", job.payload)

    @consumer.entrypoint("three")
    async def three(job: Job) -> None:
        count()

    await consumer.run()


def prepare() -> None:
    async def install() -> None:
        await (await _queries()).install()

    asyncio.run(install())


def fill(jobs: int) -> None:
    async def enqueue() -> None:
        queries = await _queries()
        await queries.enqueue(["one"] * jobs, [str(n).encode() for n in range(jobs)], [0] * jobs)

    asyncio.run(enqueue())


if __name__ == "__main__":
    asyncio.run(main())
