"""The run's RabbitMQ as pytest-rabbitmq knows a process, and what its fixtures do with it."""

from __future__ import annotations

from pathlib import Path

from pika import BlockingConnection, URLParameters
from pytest_rabbitmq.factories.executor import RabbitMqExecutor

from pipeline.dev.services.ports import LOOPBACK
from pipeline.dev.services.rabbitmq import RabbitMQ
from pipeline.dev.services.rabbitmq_node import control_script, node_environment, server_script
from pipeline.dev.services.state import State


class Node(RabbitMqExecutor):
    """The node of ``pipeline services``, with its definitions, plugins and port mapper, as users have it.

    pytest-rabbitmq's own executor gives every process of a run a bare node; this one is started by whoever comes
    first, shared by all, and ended with the run.
    """

    def __init__(self, folder: Path) -> None:
        recorded, home = State(folder, "rabbitmq").read(), folder / "rabbitmq"
        super().__init__(
            command=server_script(),
            host=LOOPBACK,
            port=recorded["amqp_port"],
            distribution_port=recorded["dist_port"],
            rabbit_ctl=control_script(),
            logpath=folder,
            path=home,
            plugin_path=home,
            node_name=recorded["node"],
        )
        # What its rabbitmqctl needs to find the node and to be let in.
        self._envvars.update(node_environment(home, recorded))
        self._node = RabbitMQ(folder)

    def start(self) -> Node:
        self._node.start()
        return self

    def running(self) -> bool:
        return self._node.running

    def parameters(self, vhost: str) -> URLParameters:
        """How a test connects. Its connection may be idle for as long as the test waits for something else."""
        found = URLParameters(self._node.url(vhost))
        found.heartbeat = 0
        return found


def leave_queues(_: RabbitMqExecutor, __: BlockingConnection) -> None:
    """They go with the test's vhost, or with the node: asking rabbitmqctl for them takes longer than most tests."""
