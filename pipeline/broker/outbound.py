"""The publishing side of a process: batches with publisher confirms, never a wait for each message."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from threading import Event, Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pika

from pipeline.broker import frames
from pipeline.broker.link import Link, Side
from pipeline.broker.topology import QueueType, declare

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.connection import Parameters

    from pipeline.broker.swift import SwiftChannel

log = logging.getLogger("pipeline.broker")

REFUSED_FOR = 2.0


class Outgoing(NamedTuple):
    """One message to publish, and which send of which job it is."""

    queue: str
    body: bytes
    priority: int
    job_id: UUID
    send: int
    sent_at: datetime
    headers: dict[str, Any] | None = None


@dataclass
class _Batch:
    messages: Sequence[Outgoing]
    done: Callable[[list[Outgoing]], None]
    open: int = 0
    failed: list[Outgoing] = field(default_factory=list)


class Outbound(Side):
    """Publishes batches; ``done`` hears which messages were not confirmed, from the loop's thread."""

    def __init__(self, link: Link, parameters: Callable[[], list[Parameters]], queue_type: QueueType) -> None:
        super().__init__(link, parameters)
        self._queue_type = queue_type
        self._queues: set[str] = set()
        self._tag = 0
        self._pending: dict[int, tuple[Outgoing, _Batch]] = {}
        self._refused: dict[str, float] = {}
        self._lock = Lock()
        self.ready = Event()
        self.reconnects = 0

    def publish(self, messages: Sequence[Outgoing], done: Callable[[list[Outgoing]], None]) -> None:
        """Publish from any thread. ``done`` is called once, when every message is confirmed or given up."""
        self._link.call(lambda: self._publish(_Batch(messages, done)))

    def oldest_unconfirmed(self) -> datetime | None:
        """When the oldest message that RabbitMQ has not confirmed was marked as sent."""
        with self._lock:
            return min((message.sent_at for message, _ in self._pending.values()), default=None)

    def drain(self, timeout: float) -> bool:
        """Wait until everything handed in is confirmed. False if it was not in time."""
        handed_in = Event()
        self._link.call(handed_in.set)
        deadline = monotonic() + timeout
        handed_in.wait(timeout)
        while self._pending and monotonic() < deadline:
            sleep(0.02)
        return handed_in.is_set() and not self._pending

    def on_ready(self, channel: SwiftChannel) -> None:
        self._tag = 0
        channel.add_on_return_callback(self._returned)
        channel.confirm_delivery(self._answered, lambda _: self._confirms_on())
        declare(channel, sorted(self._queues), self._queue_type)

    def on_lost(self) -> None:
        self.ready.clear()
        self._refused.clear()
        with self._lock:
            pending, self._pending = self._pending, {}
        for message, batch in pending.values():
            self._settle(message, batch, ok=False)

    def _confirms_on(self) -> None:
        if self._connection is not None:
            self._connection.on_confirm = self._confirmed
        self.reconnects += 1
        self.ready.set()

    def _publish(self, batch: _Batch) -> None:
        if self.channel is None or not self.channel.is_open or not self.ready.is_set():
            batch.done(list(batch.messages))
            return
        unknown = sorted({message.queue for message in batch.messages} - self._queues)
        if unknown:
            self._queues.update(unknown)
            declare(self.channel, unknown, self._queue_type)
        batch.open = len(batch.messages)
        with self.together():
            for message in batch.messages:
                self._tag += 1
                with self._lock:
                    self._pending[self._tag] = (message, batch)
                self._send(self.channel, message)

    def _send(self, channel: Channel, message: Outgoing) -> None:
        ident = f"{message.job_id}:{message.send}"
        if message.headers is None and len(message.body) <= frames.ONE_FRAME and self._connection is not None:
            data = frames.message(channel.channel_number, message.queue, message.body, message.priority, ident)
            self._connection.emit(data)
            return
        properties = pika.BasicProperties(
            delivery_mode=2,
            priority=message.priority,
            headers=message.headers,
            content_type="application/json",
            message_id=ident,
        )
        channel.basic_publish("", message.queue, message.body, properties, mandatory=True)

    def _returned(self, channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        # Comes before the confirm of the same message: forget the queue, so that it is declared again.
        self._queues.discard(method.routing_key)
        log.warning("RabbitMQ has no queue %s; it will be declared again", method.routing_key)
        with self._lock:
            found = [tag for tag, (m, _) in self._pending.items() if f"{m.job_id}:{m.send}" == properties.message_id]
            lost = [self._pending.pop(tag) for tag in found]
        for message, batch in lost:
            self._settle(message, batch, ok=False)

    def _answered(self, frame: Any) -> None:
        """What pika reads: refusals."""
        method = frame.method
        self._confirmed(method.delivery_tag, method.multiple, taken=method.NAME == "Basic.Ack")

    def _confirmed(self, tag: int, all_before: bool, taken: bool = True) -> None:
        with self._lock:
            # They wait in the order of their numbers.
            tags = list(takewhile(lambda pending: pending <= tag, self._pending)) if all_before else [tag]
            settled = [self._pending.pop(tag) for tag in tags if tag in self._pending]
        for message, batch in settled:
            self._settle(message, batch, ok=taken)
            self._watch(message.queue, taken=taken)

    def _watch(self, queue: str, *, taken: bool) -> None:
        """Leave a channel that refuses everything for a queue.

        One that was opened while the node of a quorum queue's leader died does so until that node returns
        (RabbitMQ 3.10 asks the dead node first, and only it); a new channel knows the new leader.
        """
        if taken:
            self._refused.pop(queue, None)
        elif monotonic() - self._refused.setdefault(queue, monotonic()) > REFUSED_FOR:
            self._refused.clear()
            log.warning("RabbitMQ refuses all messages for %s; connecting again", queue)
            if self._connection is not None and self._connection.is_open:
                self._connection.close()

    def _settle(self, message: Outgoing, batch: _Batch, *, ok: bool) -> None:
        batch.open -= 1
        if not ok:
            batch.failed.append(message)
        if batch.open == 0:
            batch.done(batch.failed)
