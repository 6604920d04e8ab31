"""Dramatiq's consumer threads, and what they iterate over."""

from __future__ import annotations

from collections.abc import Callable, Collection
from queue import Empty, SimpleQueue
from threading import Event
from typing import cast

from dramatiq import Worker
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.worker import ConsumerThread

from pipeline.broker.delivery import Delivery
from pipeline.broker.inbound import Inbound


class PhasesThread(ConsumerThread):
    """One for all phase queues of a process. Dramatiq would start one for each, to wait for what comes elsewhere."""

    def __init__(self, worker: Worker, queues: Collection[str]) -> None:
        super().__init__(
            broker=worker.broker,
            queue_name="all phases",
            prefetch=worker.queue_prefetch,
            work_queue=worker.work_queue,
            worker_timeout=worker.worker_timeout,
        )
        self.queues = queues


def consume_in_one_thread(worker: Worker, queues: Collection[str]) -> None:
    """Before the worker boots: it adds a consumer for each queue that has none, and then these have one.

    ``Worker.consumers`` is where its threads look for whoever acknowledges a queue's messages, too. Everything that
    Dramatiq does to all of them, it may do to the same one again: pause, resume, stop, join, close.
    """
    if queues:
        thread = PhasesThread(worker, queues)
        worker.consumers.update(dict.fromkeys(queues, thread))
        thread.start()


class PhaseConsumer(Consumer):
    """Hands deliveries straight to Dramatiq's work queue; the consumer thread itself only waits.

    Reconnecting is the link's business, so this consumer never breaks.
    """

    def __init__(
        self,
        inbound: Inbound,
        queues: Collection[str],
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
        inbound.consume(queues, prefetch, on_delivery)

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
        """Dramatiq closes it once for each queue."""
        if not self._closed.is_set():
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
