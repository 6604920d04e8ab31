"""One node for the whole run, and for each test a vhost of its own, through pytest-rabbitmq's fixtures."""

from __future__ import annotations

import pytest
from pika import BlockingConnection

from pipeline.testing.servers.node import Node
from tests.place import Place


@pytest.mark.new_vhost
def test_what_a_test_declares_is_in_its_own_vhost(
    place: Place, rabbitmq_proc: Node, rabbitmq: BlockingConnection
) -> None:
    """RabbitMQ's own tool says so; it finds the run's node with what the fixture knows about it."""
    rabbitmq.channel().queue_declare("by.hand", durable=True)
    listed = rabbitmq_proc.rabbitctl_output("list_queues", "--quiet", "--vhost", place.vhost, "name", "durable")
    assert rabbitmq_proc.running() and listed.splitlines()[1:] == ["by.hand\ttrue"]
    elsewhere = rabbitmq_proc.rabbitctl_output("list_queues", "--quiet", "--vhost", "pipeline", "name")
    assert "by.hand" not in elsewhere
