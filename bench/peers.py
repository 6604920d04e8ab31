"""What this project is measured against: Dramatiq bare, and Dramatiq with the obvious database around it.

``PEER`` chooses: ``dramatiq`` (no confirms), ``dramatiq_confirmed``, or ``naive`` (one UPDATE to claim, one to
complete, confirmed publish of the next phase).
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import dramatiq
import psycopg
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from bench.rivals.count import begin, count

PEER = os.environ.get("PEER", "dramatiq")
broker = RabbitmqBroker(url=os.environ["RABBITMQ_URL"], confirm_delivery=PEER != "dramatiq")
dramatiq.set_broker(broker)
_local = threading.local()


def _connection() -> psycopg.Connection:
    if not hasattr(_local, "connection"):
        _local.connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    return _local.connection


def _claim(job: int, phase: str) -> bool:
    if PEER != "naive":
        return True
    statement = (
        "UPDATE naive SET status = 'running', locked_at = now() WHERE id = %s AND phase = %s AND status = 'pending'"
    )
    return _connection().execute(statement, (job, phase)).rowcount == 1


def _complete(job: int, following: str | None) -> None:
    if PEER == "naive":
        statement = "UPDATE naive SET status = %s, phase = coalesce(%s, phase), locked_at = NULL WHERE id = %s"
        _connection().execute(statement, ("pending" if following else "succeeded", following, job))


def _note_age(born: int) -> None:
    with Path(os.environ["LATENCY_FILE"]).open("a") as file:
        file.write(f"{time.time_ns() - born}\n")


@dramatiq.actor(queue_name="peer-one")
def one(job: int) -> None:
    begin()
    if _claim(job, "one"):
        _complete(job, "two")
        two.send(job)


@dramatiq.actor(queue_name="peer-two")
def two(job: int) -> None:
    if _claim(job, "two"):
        _complete(job, "three")
        three.send(job)


@dramatiq.actor(queue_name="peer-three")
def three(job: int) -> None:
    if _claim(job, "three"):
        _complete(job, None)
        if "LATENCY_FILE" in os.environ:
            _note_age(job)
        else:
            count()


def fill(jobs: int) -> None:
    for n in range(1, jobs + 1):
        one.send(n)
