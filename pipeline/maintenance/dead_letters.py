"""What RabbitMQ dead-lettered by itself: a message whose delivery limit is used up kills workers before any claim."""

from __future__ import annotations

from typing import Any

import orjson
from pika.exceptions import AMQPError

from pipeline.broker import counts
from pipeline.broker.topology import dead_letter_queue
from pipeline.journey.message import InvalidEnvelope, parse
from pipeline.observe import logs
from pipeline.observe.instruments import count
from pipeline.store.engine import Wire
from pipeline.store.gateway import recovery

log = logs.get("pipeline.dead_letters")
MOST = 1000
OURS = "rejected"


def read_back(connection: Wire, amqp_url: str, queue: str) -> int:
    """Fail the jobs whose messages RabbitMQ gave up, with the reason. The letters stay where they are."""
    try:
        broker = counts.connect(amqp_url)
    except (AMQPError, OSError):
        return 0
    failed = 0
    try:
        channel = broker.channel()
        for _ in range(MOST):
            method, properties, body = channel.basic_get(dead_letter_queue(queue))
            if method is None or properties is None:
                break
            failed += _fail(connection, queue, dict(properties.headers or {}), body)
        # What is given back keeps its place, and since RabbitMQ 4.3 that is no delivery; closing would be one.
        channel.basic_nack(0, multiple=True, requeue=True)
    except AMQPError:
        log.warning("the dead letters could not be read", queue=queue)
    finally:
        # Nothing was acknowledged: whatever happened, closing puts every letter back.
        if broker.is_open:
            broker.close()
    return failed


def _fail(connection: Wire, queue: str, headers: dict[str, Any], body: Any) -> bool:
    deaths = headers.get("x-death") or [{}]
    reason = str(deaths[0].get("reason", OURS))
    if reason == OURS:
        return False
    try:
        header = parse(orjson.loads(body)["args"][0]).header
    except (InvalidEnvelope, orjson.JSONDecodeError, LookupError, TypeError):
        return False
    said = f"RabbitMQ gave the message up ({reason}): it was delivered again and again and never claimed"
    done = recovery.undeliverable(connection, header.job_id, header.send, said)
    if done:
        count("undeliverable")
        log.warning("job failed: undeliverable", job=str(header.job_id), queue=queue, reason=reason)
    return done
