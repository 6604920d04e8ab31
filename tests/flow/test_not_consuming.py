"""A worker that lives but hears nothing: it listens again by itself, or says so."""

from __future__ import annotations

from pika import BlockingConnection

from pipeline import submit
from tests.commands import pipeline
from tests.place import Place

QUEUE = "single.act"


def test_a_deleted_queue_is_declared_and_heard_again(place: Place, rabbitmq: BlockingConnection) -> None:
    """RabbitMQ ends the consumer when its queue is deleted, and says nothing afterwards."""
    place.worker(threads=2)
    place.finished(submit(None, "single"))
    rabbitmq.channel().queue_delete(QUEUE)
    job = submit(None, "single")
    assert [row["status"] for row in place.finished(job, timeout=30)] == ["succeeded"]


def test_a_worker_that_is_refused_its_queue_is_not_ready(place: Place, rabbitmq: BlockingConnection) -> None:
    """Somebody declared the queue with other arguments: the worker lives, connects, and hears nothing."""
    place.worker(threads=2)
    assert pipeline(place, "workers", "--ready").returncode == 0
    channel = rabbitmq.channel()
    channel.queue_delete(QUEUE)
    channel.queue_declare(QUEUE, durable=True, arguments={"x-max-length": 7})
    place.until(lambda: _state(place) == "not_consuming", 20, "the worker to notice")
    said = pipeline(place, "workers", "--ready")
    assert said.returncode != 0 and QUEUE in said.stderr and "Traceback" not in said.stderr
    rabbitmq.channel().queue_delete(QUEUE)
    place.until(lambda: _state(place) == "alive", 20, "the worker to hear again")
    assert pipeline(place, "workers", "--ready").returncode == 0


def _state(place: Place) -> str:
    row = place.row("SELECT pipeline.worker_state(w) AS state FROM pipeline.workers w")
    assert row is not None
    return str(row["state"])
