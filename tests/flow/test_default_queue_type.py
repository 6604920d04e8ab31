"""A vhost that gives quorum queues to whoever does not say what it wants, as RabbitMQ 4's hosts often do."""

from __future__ import annotations

from contextlib import closing

from pika import BlockingConnection, URLParameters

from pipeline import submit
from pipeline.broker.counts import server_version
from tests.place import Place


def test_classic_queues_are_declared_and_consumed_in_a_vhost_whose_default_is_quorum(place: Place) -> None:
    """F22: the declaration was refused, and the process consumed nothing at all. RabbitMQ knows the default since 3.12."""
    node = place.servers.rabbitmq
    node.delete_vhost(place.vhost)
    node.create_vhost(place.vhost, default_queue_type="quorum")
    with closing(BlockingConnection(URLParameters(node.url(place.vhost)))) as connection:
        connection.channel().queue_declare("anybody", durable=True)
        version = tuple(map(int, server_version(connection).split(".")[:2]))
    place.worker(threads=2)
    done, failed = submit(None, "single"), submit(None, "single", {"do": "fail"})
    assert [row["status"] for row in place.finished(done, failed)] == ["succeeded", "failed"]
    place.until(lambda: place.depth("single.act.XQ") == 1, 15, "the dead letter")
    types = {queue["name"]: queue["type"] for queue in node.queues(place.vhost)}
    assert {types["single.act"], types["single.act.XQ"]} == {"classic"}
    assert types["anybody"] == ("quorum" if version >= (3, 12) else "classic")
