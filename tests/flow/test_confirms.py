"""Publishing against a real RabbitMQ: what it did not take is told, and only that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from pika import BlockingConnection

from pipeline.broker.outbound import Link, Outbound, Outgoing
from pipeline.testing.servers.node import Node
from tests.messages import ready
from tests.place import Place

Publish = Callable[..., list[UUID]]


@pytest.fixture
def outbound(place: Place, rabbitmq_proc: Node) -> Iterator[Outbound]:
    link = Link("test-amqp")
    one = Outbound(link, lambda: [rabbitmq_proc.parameters(place.vhost)], "classic")
    link.start()
    link.add(one)
    assert one.ready.wait(10)
    yield one
    link.stop()


@pytest.fixture
def publish(outbound: Outbound) -> Publish:
    """Publishes messages for the queues given and returns the jobs whose messages were not confirmed."""

    def send(*jobs: tuple[UUID, str]) -> list[UUID]:
        answered = threading.Event()
        failed: list[UUID] = []

        def done(unconfirmed: list[Outgoing]) -> None:
            failed.extend(message.job_id for message in unconfirmed)
            answered.set()

        now = datetime.now(UTC)
        outbound.publish([Outgoing(queue, b"{}", 0, job, 1, now) for job, queue in jobs], done)
        assert answered.wait(10), "neither confirmed nor refused"
        return failed

    return send


def test_what_rabbitmq_takes_is_confirmed(rabbitmq: BlockingConnection, publish: Publish) -> None:
    """The queue is declared on the way."""
    assert publish((uuid4(), "fresh.queue"), (uuid4(), "fresh.queue")) == []
    assert ready(rabbitmq, "fresh.queue") == (2, 0)


def test_a_refused_message_is_told_and_its_neighbours_are_not(
    rabbitmq: BlockingConnection, outbound: Outbound, publish: Publish
) -> None:
    """A full queue refuses what is published: basic.nack."""
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    rabbitmq.channel().queue_declare("full.queue", durable=True, arguments=full)
    outbound._queues.add("full.queue")
    taken, refused, elsewhere = uuid4(), uuid4(), uuid4()
    assert publish((taken, "full.queue")) == []
    assert publish((elsewhere, "other.queue"), (refused, "full.queue")) == [refused]


def test_a_message_for_a_queue_that_is_gone_is_told(rabbitmq: BlockingConnection, publish: Publish) -> None:
    """RabbitMQ returns it and confirms it all the same; the next one finds its queue declared again."""
    lost = uuid4()
    assert publish((uuid4(), "deleted.queue")) == []
    rabbitmq.channel().queue_delete("deleted.queue")
    assert publish((lost, "deleted.queue")) == [lost]
    assert publish((uuid4(), "deleted.queue")) == []


def test_without_a_connection_everything_is_told(place: Place, outbound: Outbound, publish: Publish) -> None:
    """At once: the relay sends it again when RabbitMQ is back."""
    outbound._link.call(outbound.close)
    place.until(lambda: not outbound.ready.is_set(), 10, "the connection to close")
    jobs = [uuid4(), uuid4()]
    assert publish(*((job, "fresh.queue") for job in jobs)) == jobs
