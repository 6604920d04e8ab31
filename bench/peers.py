"""What this project is measured against: Dramatiq bare, and Dramatiq with the obvious database around it.

``PEER`` chooses:

- ``dramatiq``: three actors, each sends the next; no confirms. ``dramatiq_confirmed``: with publisher confirms.
- ``dramatiq_one_actor``: one actor calls the three functions.
- ``dramatiq_results``: messages carry what the phases before returned, 20 KB each.
- ``dramatiq_insert``: each phase inserts a row, on a connection of its thread's own, and commits.
- ``naive``: one UPDATE to claim, one to complete; confirmed. ``naive_insert``: the row commits with the latter.
"""

from __future__ import annotations

import os
import threading
from itertools import count as numbers
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import dramatiq
import psycopg
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from bench.rivals.count import count, text_of

PEER = os.environ.get("PEER", "dramatiq")
NAIVE = PEER.startswith("naive")
INSERTS = PEER.endswith("_insert")
# Whoever fills the queues beforehand need not wait: that is not measured.
CONFIRMED = (NAIVE or PEER == "dramatiq_confirmed") and "FILLS" not in os.environ
CLAIM = "UPDATE naive SET status = 'running', locked_at = now() WHERE id = %s AND phase = %s AND status = 'pending'"
COMPLETE = "UPDATE naive SET status = %s, phase = %s, locked_at = NULL WHERE id = %s"
INSERT = "INSERT INTO written (job, phase, note) VALUES (%s, %s, %s)"
NOTE = "x" * 180
broker = RabbitmqBroker(url=os.environ["RABBITMQ_URL"], confirm_delivery=CONFIRMED)
dramatiq.set_broker(broker)
_local = threading.local()
_ids = numbers(1)


def _connection() -> psycopg.Connection[Any]:
    if not hasattr(_local, "connection"):
        _local.connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    connection: psycopg.Connection[Any] = _local.connection
    return connection


def _claim(job: int, phase: str) -> bool:
    return not NAIVE or _connection().execute(CLAIM, (job, phase)).rowcount == 1


def _complete(job: int, phase: str, following: str | None) -> None:
    """One commit, whatever there is to write; none if there is nothing."""
    if NAIVE and INSERTS:
        with _connection().transaction():
            _connection().execute(INSERT, (str(job), phase, NOTE))
            _to(job, phase, following)
    elif INSERTS:
        _connection().execute(INSERT, (str(job), phase, NOTE))
    elif NAIVE:
        _to(job, phase, following)


def _to(job: int, phase: str, following: str | None) -> None:
    _connection().execute(COMPLETE, ("pending" if following else "succeeded", following or phase, job))


def _passed_on(results: dict[str, str], phase: str) -> dict[str, str]:
    return {**results, phase: text_of(20_000)} if PEER == "dramatiq_results" else results


def _ended(born: float | None) -> None:
    if born is None:
        count()
    else:
        with Path(os.environ["DONE_FILE"]).open("a") as file:
            file.write(f"{time() - born}\n")


@dramatiq.actor(queue_name="peer-one")
def one(job: int, results: dict[str, str], born: float | None = None) -> None:
    if _claim(job, "one"):
        _complete(job, "one", "two")
        two.send(job, _passed_on(results, "one"), born)


@dramatiq.actor(queue_name="peer-two")
def two(job: int, results: dict[str, str], born: float | None) -> None:
    if _claim(job, "two"):
        _complete(job, "two", "three")
        three.send(job, _passed_on(results, "two"), born)


@dramatiq.actor(queue_name="peer-three")
def three(job: int, results: dict[str, str], born: float | None) -> None:
    if _claim(job, "three"):
        _complete(job, "three", None)
        _ended(born)


@dramatiq.actor(queue_name="peer-all")
def at_once(job: int) -> None:
    for phase in (_empty, _empty, _empty):
        phase(job)
    count()


def _empty(job: int) -> None:
    return None


def fill(jobs: int) -> None:
    ids = [next(_ids) for _ in range(jobs)]
    if NAIVE:
        with _connection().cursor() as cursor, cursor.copy("COPY naive (id, phase, status) FROM STDIN") as copy:
            for job in ids:
                copy.write_row((job, "one", "pending"))
    for job in ids:
        if PEER == "dramatiq_one_actor":
            at_once.send(job)
        else:
            one.send(job, {})


def single() -> None:
    """One job that writes down its age at its end."""
    one.send(0, {}, time())


def pace(rate: float, seconds: float) -> int:
    """A steady stream of such jobs, twenty groups a second; how many they were."""
    started, sent = monotonic(), 0
    while (age := monotonic() - started) < seconds:
        while sent < int(age * rate):
            single()
            sent += 1
        sleep(0.05)
    return sent
