"""Taskiq on RabbitMQ: three tasks, each kicks the next; no state. Its queue is a quorum queue by default."""

from __future__ import annotations

import asyncio
import os

from taskiq_aio_pika import AioPikaBroker

from bench.rivals.count import count

broker = AioPikaBroker(os.environ["RABBITMQ_URL"])


@broker.task
async def one(job: int) -> None:
    await two.kiq(job)


@broker.task
async def two(job: int) -> None:
    await three.kiq(job)


@broker.task
async def three(job: int) -> None:
    count()


def fill(jobs: int) -> None:
    asyncio.run(_fill(jobs))


async def _fill(jobs: int) -> None:
    await broker.startup()
    for start in range(0, jobs, 100):
        await asyncio.gather(*(one.kiq(n) for n in range(start, min(start + 100, jobs))))
    await broker.shutdown()
