"""Dead letters of quorum queues are for people, who look at them more than once."""

from __future__ import annotations

from pika import BlockingConnection

from tests.place import Place

LOOKS = 30


def test_a_dead_letter_is_still_there_after_many_looks(place: Place, rabbitmq: BlockingConnection) -> None:
    """F22: RabbitMQ 4 drops a quorum queue's message after twenty, where no policy says otherwise."""
    channel, queue = rabbitmq.channel(), "looked-at.XQ"
    channel.confirm_delivery()
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
    channel.basic_publish("", queue, b"kept")

    def look() -> bool:
        method, _, body = channel.basic_get(queue)
        if method is None or method.delivery_tag is None:
            return False
        channel.basic_reject(method.delivery_tag, requeue=True)
        return body == b"kept"  # type: ignore[comparison-overlap] # types-pika says str

    for _ in range(LOOKS):
        # What was given back is not there again at once.
        place.until(look, 10, "the letter")
