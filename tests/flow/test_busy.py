"""A process whose threads are all busy leaves messages to those that have free ones."""

from __future__ import annotations

import pytest
from pika import BlockingConnection

from pipeline import submit
from tests.messages import ready
from tests.place import Place

pytestmark = pytest.mark.usefixtures("with_more")


def test_what_comes_to_an_idle_queue_of_a_busy_process_is_done_by_another(
    place: Place, rabbitmq: BlockingConnection
) -> None:
    """It keeps its consumers of idle queues; a message that reaches one of them goes back at once, and it listens no more."""
    place.worker(threads=1)
    [busy] = place.pids()
    long = submit(None, "triple", {"seconds": 20})
    place.running(long)
    waiting = submit(None, "triple", {"seconds": 0})
    place.until(lambda: ready(rabbitmq, "triple.first") == (1, 0), what="the message to be given back")
    late = submit(None, "single", {"do": "nothing"})
    place.until(lambda: ready(rabbitmq, "single.act") == (1, 0), what="the message to be refused")
    place.worker(threads=1)
    place.finished(waiting, late, timeout=15)
    assert {pid for job, *_, pid in place.executions() if job != str(long)}.isdisjoint({busy})
    assert place.job(long)["status"] == "running"


@pytest.mark.new_vhost
def test_what_a_busy_process_gives_back_is_no_delivery_of_a_quorum_queue(
    place: Place, rabbitmq: BlockingConnection
) -> None:
    """A later phase's message that waits behind earlier ones comes and goes: its healthy job would fail at the limit."""
    starved = submit(None, "starter")
    place.db.execute("UPDATE pipeline.jobs SET phase = 'third'")
    place.db.execute(
        "UPDATE pipeline.outbox SET phase_id = (SELECT id FROM pipeline.phases WHERE queue = 'starter.third')"
    )
    early = [submit(None, "starter", {"seconds": 0.8}) for _ in range(8)]
    worker = place.worker(threads=1, PIPELINE_QUEUE_TYPE="quorum")
    place.until(lambda: place.job(starved)["send"] >= 4, 40, "its message to be given back again and again")
    long = submit(None, "starter", {"seconds": 60})
    place.running(long, timeout=60)
    # An early job may have come that far.
    place.until(lambda: ready(rabbitmq, "starter.third") in ((1, 0), (2, 0)), 20, "it to be given back once more")
    # A delivery that meets the end of its consumer is returned by RabbitMQ itself, which counts once: they do not add up.
    assert deliveries(rabbitmq, "starter.third") <= {0, 1}
    assert place.job(starved)["status"] == "pending" and place.attempts(starved) == []
    worker.terminate()
    worker.wait()
    place.worker(threads=8, PIPELINE_QUEUE_TYPE="quorum")
    assert {row["status"] for row in place.finished(starved, *early)} == {"succeeded"}


def deliveries(rabbitmq: BlockingConnection, queue: str) -> set[int]:
    """How often RabbitMQ says that each message there came back before. Looking at them counts."""
    found: set[int] = set()
    with rabbitmq.channel() as channel:
        while True:
            method, properties, _ = channel.basic_get(queue)
            if method is None or properties is None:
                return found
            found.add(int((properties.headers or {}).get("x-delivery-count", 0)))
