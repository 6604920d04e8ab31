"""Celery: three tasks, each sends the next; acknowledged late, as somebody who fears losing work would set it."""

from __future__ import annotations

import os

from celery import Celery

from bench.rivals.count import count

app = Celery("chain", broker=os.environ["RABBITMQ_URL"].replace("amqp://", "pyamqp://"))
app.conf.update(task_acks_late=True, task_ignore_result=True, worker_hijack_root_logger=False)


@app.task(name="one")
def one(job: int) -> None:
    two.delay(job)


@app.task(name="two")
def two(job: int) -> None:
    three.delay(job)


@app.task(name="three")
def three(job: int) -> None:
    count()


def fill(jobs: int) -> None:
    for n in range(jobs):
        one.delay(n)
