"""How many messages RabbitMQ has, without taking any: a peek would mark them as redelivered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.connection import Connection
from pika.exceptions import AMQPError, ChannelClosedByBroker

from pipeline.broker.management import UNANSWERED, Login, request

# Without statistics the totals of classic queues are current; with them they lag by seconds.
TOTALS = "disable_stats=true&enable_queue_totals=true"
NO_SUCH_QUEUE = 404
ALARMS = ("mem_alarm", "disk_free_alarm")


def all_messages(management_url: str, amqp_url: str) -> dict[str, int] | None:
    """Ready and unacknowledged messages of each queue, or None if the management API does not answer."""
    # Of a cluster's nodes, separated by ';', whichever answers first speaks for all.
    answers = (_ask_management(url, amqp_url) for url in management_url.split(";"))
    return next((found for found in answers if found is not None), None)


def ready_messages(amqp_url: str, queues: Iterable[str]) -> dict[str, int] | None:
    """Ready messages of each queue: what anybody who may consume can ask. None if RabbitMQ cannot be reached."""
    counts: dict[str, int] = {}
    try:
        connection = connect(amqp_url)
        try:
            channel = connection.channel()
            for queue in queues:
                channel = channel if channel.is_open else connection.channel()
                counts[queue] = _ready(channel, queue)
        finally:
            if connection.is_open:
                connection.close()
    except (AMQPError, OSError):
        return None
    return counts


def connect(amqp_url: str) -> pika.BlockingConnection:
    """A connection for a few questions; pika tries a cluster's nodes one after another."""
    choices = [pika.URLParameters(url) for url in amqp_url.split(";")]
    for choice in choices:
        # A broker that accepts and then says nothing is given up, too.
        choice.heartbeat = 10
        choice.blocked_connection_timeout = 10
    return pika.BlockingConnection(choices)


def _ready(channel: BlockingChannel, queue: str) -> int:
    try:
        return int(channel.queue_declare(queue, passive=True).method.message_count or 0)
    except ChannelClosedByBroker as error:
        if error.reply_code == NO_SUCH_QUEUE:
            return 0
        raise


def alarms(management_url: str) -> dict[str, list[str]]:
    """By node, the alarms because of which it takes no messages, as far as the management API tells."""
    for url in management_url.split(";"):
        try:
            answer = request(url, _login(url), "nodes")
            if answer.well:
                return {node["name"]: [alarm for alarm in ALARMS if node.get(alarm)] for node in answer.body}
        except (*UNANSWERED, LookupError, TypeError, AttributeError):
            continue
    return {}


def delivery_limits(management_url: str, amqp_url: str, queues: Iterable[str]) -> dict[str, int]:
    """After how many deliveries each queue gives a message up; without those that never do, or cannot be asked."""
    found: dict[str, int] = {}
    for queue in queues:
        for url in management_url.split(";"):
            try:
                answer = request(url, _login(url), f"queues/{_vhost(amqp_url)}/{quote(queue, safe='')}")
            except UNANSWERED:
                continue
            if answer.well and isinstance(limit := _delivery_limit(answer.body), int) and limit >= 0:
                found[queue] = limit
            break
    return found


def _delivery_limit(queue: dict[str, Any]) -> object:
    """As RabbitMQ 4 says it, which has a default; before there are policies only."""
    return queue.get("delivery_limit", (queue.get("effective_policy_definition") or {}).get("delivery-limit"))


def server_version(connection: pika.BlockingConnection) -> str:
    """RabbitMQ's version, as it says when a client connects."""
    told: Connection = connection._impl  # type: ignore[attr-defined] # nothing public leads there
    properties = told.server_properties or {}
    version = properties.get("version", b"")
    return version.decode() if isinstance(version, bytes) else str(version)


def _login(management_url: str) -> Login:
    address = urlsplit(management_url)
    return Login(unquote(address.username or ""), unquote(address.password or ""))


def _vhost(amqp_url: str) -> str:
    return quote(unquote(urlsplit(amqp_url.split(";", maxsplit=1)[0]).path[1:]) or "/", safe="")


def _ask_management(management_url: str, amqp_url: str) -> dict[str, int] | None:
    login = _login(management_url)
    try:
        answer = request(management_url, login, f"queues/{_vhost(amqp_url)}?{TOTALS}")
        return {queue["name"]: int(queue.get("messages", 0)) for queue in answer.body} if answer.well else None
    except (*UNANSWERED, LookupError, TypeError, AttributeError):
        # It is away, refuses us, or something else listens there.
        return None
