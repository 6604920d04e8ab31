"""awa: a Rust core on PostgreSQL with asyncio handlers; three kinds of jobs, each inserts the next."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

import awa

from bench.rivals.count import count

# Coroutines are not threads: more of them at a time make it faster.
WORKERS = 50


@dataclass
class One:
    job: int


@dataclass
class Two:
    job: int


@dataclass
class Three:
    job: int


async def started() -> awa.AsyncClient:
    client = awa.AsyncClient(os.environ["DATABASE_URL"])

    @client.task(One, queue="one")
    async def one(job: awa.Job[One]) -> None:
        await client.insert(Two(job.args.job), queue="two")

    @client.task(Two, queue="two")
    async def two(job: awa.Job[Two]) -> None:
        await client.insert(Three(job.args.job), queue="three")

    @client.task(Three, queue="three")
    async def three(job: awa.Job[Three]) -> None:
        count()

    await client.start([("one", WORKERS), ("two", WORKERS), ("three", WORKERS)])
    return client


async def main() -> None:
    await started()
    await asyncio.Event().wait()


def prepare() -> None:
    awa.Client(os.environ["DATABASE_URL"]).migrate()

    async def first_start() -> None:
        """Turns a fresh database to the newer of its two storage engines."""
        await (await started()).shutdown()

    asyncio.run(first_start())


def fill(jobs: int) -> None:
    awa.Client(os.environ["DATABASE_URL"]).enqueue_many_copy([One(n) for n in range(jobs)], queue="one")


if __name__ == "__main__":
    asyncio.run(main())
