"""Our queues on a RabbitMQ as it is shipped: no definitions, no policy, no user but guest."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pika import BlockingConnection
from pytest_rabbitmq import factories

from pipeline.broker.counts import server_version
from pipeline.broker.topology import PRIORITIES, arguments, dead_letter_queue, declare
from pipeline.dev.services import processes
from pipeline.dev.services.ports import LOOPBACK, answers, free_port
from pipeline.dev.services.rabbitmq_node import control_script, epmd_program, server_script
from pipeline.dev.services.readiness import wait_until
from pipeline.testing.servers.node import leave_queues

stock_node = factories.rabbitmq_proc(server=server_script(), ctl=control_script())
stock = factories.rabbitmq("stock_node", teardown=leave_queues)


@pytest.fixture(scope="session", autouse=True)
def port_mapper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The node finds Erlang's port mapper here: the machine's own may not be there, or not answer."""
    home, port = tmp_path_factory.mktemp("erlang"), free_port()
    command = [epmd_program(), "-address", LOOPBACK, "-port", str(port)]
    epmd = processes.spawn(command, home / "epmd.log", {"HOME": str(home)}, None)
    wait_until(lambda: answers(port), epmd, home / "epmd.log", "Erlang's epmd", 10)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"HOME": home, "ERL_EPMD_ADDRESS": LOOPBACK, "ERL_EPMD_PORT": port}.items():
            patch.setenv(name, str(value))
        yield
    processes.send(epmd, signal.SIGTERM)
    processes.wait_gone(epmd, 10)


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_rejected_message_goes_through_the_exchange_to_its_dead_letter_queue(
    stock: BlockingConnection, queue_type: str
) -> None:
    """Nothing has to be set up by hand; declaring twice changes nothing."""
    channel = stock.channel()
    queue = f"stock.{queue_type}"
    for _ in range(2):
        declare(channel, [queue], queue_type)  # type: ignore[arg-type]
    channel.basic_publish("", queue, b"poison")
    [(method, _, body)] = [next(channel.consume(queue, inactivity_timeout=10))]
    assert method is not None and method.delivery_tag is not None and body == b"poison"
    channel.basic_nack(method.delivery_tag, requeue=False)
    channel.cancel()
    method, properties, body = next(channel.consume(dead_letter_queue(queue), inactivity_timeout=10))
    assert properties is not None and properties.headers is not None and body == b"poison"
    assert properties.headers["x-death"][0]["reason"] == "rejected"


def test_a_classic_queue_delivers_the_highest_priority_first(stock: BlockingConnection) -> None:
    """G9, where RabbitMQ decides."""
    from pika import BasicProperties

    channel = stock.channel()
    declare(channel, ["stock.order"], "classic")
    for priority in (0, PRIORITIES, 5):
        channel.basic_publish("", "stock.order", str(priority).encode(), BasicProperties(priority=priority))
    channel.basic_qos(prefetch_count=1)
    got = []
    for method, _, body in channel.consume("stock.order", inactivity_timeout=10):
        assert method is not None and method.delivery_tag is not None and body is not None
        got.append(int(body))
        channel.basic_ack(method.delivery_tag)
        if len(got) == 3:
            break
    assert got == [PRIORITIES, 5, 0]


def test_a_quorum_queue_delivers_the_highest_priority_first_where_rabbitmq_can(stock: BlockingConnection) -> None:
    """Strictly since RabbitMQ 4.3, without being told to; nothing is refused by those before."""
    from pika import BasicProperties

    channel = stock.channel()
    channel.confirm_delivery()
    declare(channel, ["stock.quorum-order"], "quorum")
    for priority in (0, PRIORITIES, 5):
        channel.basic_publish("", "stock.quorum-order", str(priority).encode(), BasicProperties(priority=priority))
    got = []
    for method, _, body in channel.consume("stock.quorum-order", inactivity_timeout=10):
        assert method is not None and method.delivery_tag is not None and body is not None
        got.append(int(body))
        channel.basic_ack(method.delivery_tag)
        if len(got) == 3:
            break
    strict = tuple(map(int, server_version(stock).split(".")[:2])) >= (4, 3)
    assert got == [PRIORITIES, 5, 0] if strict else sorted(got) == [0, 5, PRIORITIES]


def test_a_queue_that_an_older_version_declared_without_its_type_is_the_same_queue(stock: BlockingConnection) -> None:
    """Two versions of the pipeline run side by side during a deploy."""
    queue = "stock.older"
    older = {name: value for name, value in arguments(queue, "classic").items() if name != "x-queue-type"}
    stock.channel().queue_declare(queue, durable=True, arguments=older)
    declare(stock.channel(), [queue], "classic")
    stock.channel().queue_declare(queue, durable=True, arguments=older)
