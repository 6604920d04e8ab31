"""How many messages RabbitMQ has, without taking any: a peek would mark them as redelivered."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

import httpx
import pika
from pika.exceptions import AMQPError


def message_counts(management_url: str | None, amqp_url: str, queues: list[str]) -> dict[str, int] | None:
    """Ready and unacknowledged messages of each queue, or None if RabbitMQ cannot be asked just now."""
    # Of a cluster's nodes, separated by ';', whichever answers first speaks for all.
    if management_url is not None:
        answers = (_ask_management(url, amqp_url) for url in management_url.split(";"))
    else:
        answers = (_ask_amqp(url, queues) for url in amqp_url.split(";"))
    return next((found for found in answers if found is not None), None)


def _ask_management(management_url: str, amqp_url: str) -> dict[str, int] | None:
    address = urlsplit(management_url)
    auth = (unquote(address.username or ""), unquote(address.password or ""))
    vhost = quote(unquote(urlsplit(amqp_url.split(";", maxsplit=1)[0]).path[1:]) or "/", safe="")
    base = f"{address.scheme}://{address.hostname}:{address.port}"
    try:
        # Without statistics the totals of classic queues are current; with them they lag by seconds.
        totals = {"disable_stats": "true", "enable_queue_totals": "true"}
        # Certificates are megabytes to load at every look, and nobody shows one over plain HTTP.
        verify = address.scheme == "https"
        answer = httpx.get(f"{base}/api/queues/{vhost}", auth=auth, timeout=10, params=totals, verify=verify)
        answer.raise_for_status()
    except httpx.HTTPError:
        return None
    return {queue["name"]: int(queue.get("messages", 0)) for queue in answer.json()}


def _ask_amqp(amqp_url: str, queues: list[str]) -> dict[str, int] | None:
    """Only ready messages can be counted this way, so it answers for empty queues and nothing else."""
    counts: dict[str, int] = {}
    try:
        connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        try:
            for queue in queues:
                found = connection.channel().queue_declare(queue, passive=True).method
                counts[queue] = int(found.message_count or 0) if found.consumer_count == 0 else 2**31
        finally:
            connection.close()
    except (AMQPError, OSError):
        return None
    return counts
