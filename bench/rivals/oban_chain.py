"""Oban for Python: three jobs, each enqueues the next."""

from __future__ import annotations

import asyncio
import os

import uvloop
from oban import Oban, job
from oban.schema import install

from bench.rivals.count import count

# Coroutines are not threads: more of them at a time make it faster.
LIMIT = 50


@job(queue="one")
async def one(n: int) -> None:
    await two.enqueue(n)


@job(queue="two")
async def two(n: int) -> None:
    await three.enqueue(n)


@job(queue="three")
async def three(n: int) -> None:
    count()


async def main() -> None:
    pool = await Oban.create_pool(os.environ["DATABASE_URL"])
    async with Oban(pool=pool, queues={"one": LIMIT, "two": LIMIT, "three": LIMIT}):
        await asyncio.Event().wait()


def prepare() -> None:
    async def run() -> None:
        await install(await Oban.create_pool(os.environ["DATABASE_URL"]))

    uvloop.run(run())


def fill(jobs: int) -> None:
    async def run() -> None:
        pool = await Oban.create_pool(os.environ["DATABASE_URL"])
        async with Oban(pool=pool) as oban:
            await oban.enqueue_many(one.new(n) for n in range(jobs))
        await pool.close()

    uvloop.run(run())


if __name__ == "__main__":
    uvloop.run(main())
