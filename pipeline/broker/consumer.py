"""What Dramatiq's consumer threads iterate over."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event
from typing import cast

from dramatiq.broker import Consumer, MessageProxy

from pipeline.broker.delivery import Delivery
from pipeline.broker.inbound import Inbound


class PhaseConsumer(Consumer):
    """Hands deliveries straight to Dramatiq's work queue; the consumer thread itself only waits.

    Reconnecting is the link's business, so this consumer never breaks.
    """

    def __init__(
        self,
        inbound: Inbound,
        queue: str,
        prefetch: int,
        timeout: float,
        *,
        on_delivery: Callable[[Delivery], None],
        on_close: Callable[[], None],
    ) -> None:
        self._inbound = inbound
        self._timeout = timeout
        self._closed = Event()
        self._on_close = on_close
        inbound.consume([queue], prefetch, on_delivery)

    def __next__(self) -> MessageProxy | None:
        self._closed.wait(self._timeout)
        return None

    def ack(self, message: MessageProxy) -> None:
        delivery = cast(Delivery, message)
        if not delivery.deferred:
            self._inbound.ack([delivery])

    def nack(self, message: MessageProxy) -> None:
        self._inbound.reject(cast(Delivery, message))

    def close(self) -> None:
        self._closed.set()
        self._on_close()


class SweepConsumer(Consumer):
    """Runs each sweep in the consumer thread itself, so that it never waits behind the jobs it is to save."""

    def __init__(self, inbound: Inbound, queue: str, timeout: float, run: Callable[[Delivery], None]) -> None:
        self._inbound = inbound
        self._timeout = timeout
        self._run = run
        self._arrived: SimpleQueue[Delivery] = SimpleQueue()
        inbound.consume([queue], 1, self._arrived.put)

    def __next__(self) -> MessageProxy | None:
        try:
            delivery = self._arrived.get(timeout=self._timeout)
        except Empty:
            return None
        self._run(delivery)
        self._inbound.ack([delivery])
        return None
