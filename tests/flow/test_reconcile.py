"""Rule 10 without RabbitMQ's management API: what RabbitMQ lost is sent again, and nothing else is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from time import sleep
from uuid import UUID

import pytest
from pika import BlockingConnection

from pipeline import settings, submit_many
from pipeline.maintenance.reconcile import Reconciler
from pipeline.maintenance.verify import verify
from pipeline.store.engine import connect
from tests.messages import ready
from tests.place import Place

QUEUE = "single.act"
JOBS = 40


@pytest.fixture
def alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Only the two addresses that every deployment has."""
    place.unset = frozenset({"RABBITMQ_MANAGEMENT_URL"})
    monkeypatch.delenv("RABBITMQ_MANAGEMENT_URL")
    settings.get.cache_clear()
    return place


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a management API that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://guest:guest@127.0.0.1:{server.getsockname()[1]}"


def queued(place: Place, rabbitmq: BlockingConnection, **extra: str) -> list[UUID]:
    """Jobs whose messages wait in RabbitMQ, which has confirmed them, while both threads are busy for three seconds."""
    place.worker(threads=2, settings=extra)
    busy = submit_many(None, "single", [{"do": "sleep", "seconds": 3}] * 2)
    for job in busy:
        place.running(job)
    jobs = submit_many(None, "single", [{}] * JOBS)
    place.until(lambda: confirmed(place) == JOBS and ready(rabbitmq, QUEUE)[0] == JOBS, 20, "messages")
    return [*busy, *jobs]


def confirmed(place: Place) -> int:
    return place.count("SELECT count(*) FROM pipeline.unclaimed(now())")


def test_a_purged_queue_is_made_good(alone: Place, rabbitmq: BlockingConnection) -> None:
    """G1 has no condition: every job ends."""
    jobs = queued(alone, rabbitmq)
    rabbitmq.channel().queue_purge(QUEUE)
    assert {row["status"] for row in alone.finished(*jobs, timeout=60)} == {"succeeded"}
    alone.until(lambda: alone.counter("resent") == JOBS, what="the count of messages sent again")
    assert len(alone.executions()) == len(jobs)


def test_a_deleted_queue_is_made_good(alone: Place, rabbitmq: BlockingConnection) -> None:
    """Its worker declares it again, empty."""
    jobs = queued(alone, rabbitmq)
    rabbitmq.channel().queue_delete(QUEUE)
    assert {row["status"] for row in alone.finished(*jobs, timeout=60)} == {"succeeded"}
    assert len(alone.executions()) == len(jobs)


def test_a_management_api_that_never_answers_stops_nothing(
    alone: Place, rabbitmq: BlockingConnection, silent: str
) -> None:
    """After its ten seconds, what RabbitMQ lost is found without it."""
    jobs = queued(alone, rabbitmq, PIPELINE_HEALTH_SECONDS="600")
    rabbitmq.channel().queue_purge(QUEUE)
    reconciler = Reconciler(settings.load(rabbitmq_management_url=silent))
    with connect(settings.get().dsn, "test") as connection:
        while reconciler.check(connection):
            sleep(0.5)
    assert {row["status"] for row in alone.finished(*jobs)} == {"succeeded"}


@pytest.mark.parametrize("short", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_healthy_queues_are_left_alone(alone: Place, short: int) -> None:
    """Short jobs through three phases beside jobs that keep a thread for seconds, for many looks: none is sent twice."""
    alone.worker(threads=2, processes=2, PIPELINE_HEALTH_SECONDS="1")
    slow = submit_many(None, "single", [{"do": "sleep", "seconds": 0.7}] * (short // 10))
    jobs = submit_many(None, "triple", [{"seconds": 0.02}] * short)
    alone.finished(*slow, *jobs, timeout=120)
    assert alone.counter("resent") == 0
    assert alone.count("SELECT max(send) FROM pipeline.jobs WHERE workflow = 'single'") == 2


def test_verify_calls_no_healthy_queue_short_and_finds_a_purged_one(alone: Place, rabbitmq: BlockingConnection) -> None:
    """What the workers hold counts, too."""
    alone.worker(threads=2, PIPELINE_HEALTH_SECONDS="600")
    jobs = submit_many(None, "single", [{"do": "sleep", "seconds": 0.4}] * 30)
    alone.until(lambda: alone.statuses().get("act/succeeded", 0) > 2, what="the work to be under way")
    assert verify(settings.get(), repair=True) == []
    alone.until(lambda: rabbitmq.channel().queue_purge(QUEUE).method.message_count, what="messages to purge")
    alone.until(lambda: "act/running" not in alone.statuses(), what="the rest to end")
    alone.until(lambda: confirmed(alone) == alone.statuses()["act/pending"], what="confirms of what was sent")
    [finding] = verify(settings.get(), repair=True)
    assert (finding.problem, finding.subject, finding.repaired) == ("queue that lost messages", QUEUE, True)
    alone.finished(*jobs, timeout=60)
    assert verify(settings.get(), repair=True) == []
