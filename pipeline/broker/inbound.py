"""The consuming side of a process: all its queues on one channel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from pipeline.broker import frames, unstarted
from pipeline.broker.boot_order import BootOrder
from pipeline.broker.delivery import Delivery, decode
from pipeline.broker.link import Link, Side
from pipeline.broker.swift import queue_of
from pipeline.broker.topology import SWEEPS, QueueType, arguments, declare_exchange, declare_queue
from pipeline.broker.unstarted import Aside, Unstarted

if TYPE_CHECKING:
    from pika.connection import Parameters

    from pipeline.broker.swift import SwiftChannel

log = logging.getLogger("pipeline.broker")

OnDelivery = Callable[[Delivery], None]
LISTEN_AGAIN = 0.2


class Inbound(Side):
    """Delivers messages to their consumers, acknowledges them, and gives unstarted ones back.

    An acknowledgement goes only to the channel that delivered the message: after a reconnect the old
    numbers would name other messages.
    """

    def __init__(
        self,
        link: Link,
        parameters: Callable[[], list[Parameters]],
        queue_type: QueueType,
        rank: Callable[[str], int] = lambda _: 0,
    ) -> None:
        super().__init__(link, parameters)
        self._order = BootOrder(rank, self._hand_out, link.later)
        self._queue_type = queue_type
        self._consumers: dict[str, tuple[int, OnDelivery]] = {}
        self._unstarted = Unstarted()
        self._paused = False
        self._closed = False
        self._aside = Aside()
        # What becomes of messages that nobody has begun with, in the AMQP thread.
        self.give_back: Callable[[list[Delivery]], None] = self._requeue

    def expect(self, queues: Iterable[str]) -> None:
        """Hand nothing out before all of these phases are consumed: they come up one by one."""
        self._link.call(lambda: self._order.expect(queues))

    def consume(self, queues: Collection[str], prefetch: int, on_delivery: OnDelivery) -> None:
        """Consume these queues from now on, also after every reconnect."""
        self._link.call(lambda: self._add(queues, prefetch, on_delivery))

    def ack(self, deliveries: Iterable[Delivery]) -> None:
        """Acknowledge what its own channel can still acknowledge; the rest will be delivered again."""
        batch = list(deliveries)
        if batch:
            self._link.call(lambda: self._acknowledge(batch))

    def discard(self, deliveries: list[Delivery]) -> None:
        """Acknowledge messages that were to be given back: they are void."""
        self._link.call(lambda: self._discard(deliveries))

    def requeue(self, deliveries: list[Delivery]) -> None:
        """Give them back to RabbitMQ, which counts that as a delivery where the queue is a quorum queue."""
        self._link.call(lambda: self._requeue(deliveries))

    def reject(self, delivery: Delivery) -> None:
        """Send the message to its dead-letter queue."""
        self._link.call(lambda: self._reject(delivery))

    def set_aside(self, delivery: Delivery, seconds: float) -> None:
        """Hand the message out again after a while: nothing can be said about its job now. No thread waits for it."""
        self._link.call(lambda: self._set_aside(delivery, seconds))

    def begin(self, delivery: Delivery) -> bool:
        """Mark the message as started. False if it is no longer ours and must be left alone."""
        self._unstarted.discard(delivery)
        return delivery.live

    def begin_here(self, delivery: Delivery) -> None:
        """Hand out a delivery that this process made itself."""
        self._consumers[delivery.queue][1](delivery)

    def consumes(self, queue: str) -> bool:
        """Whether this process takes messages of the queue just now."""
        return not self._paused and self._hears(queue)

    def has_waiting(self, above: int | None) -> bool:
        """Whether a message waits for a thread: any, or one of a higher priority."""
        return bool(self._unstarted) if above is None else self._unstarted.highest() > above

    def pause_if(self, wanted: Callable[[], bool]) -> None:
        """Take no more jobs if ``wanted`` says so when it is asked, in the AMQP thread; otherwise take them again.

        Those nobody started on are given back: others may have free threads. Sweeps are taken all the same: they have
        a thread of their own.
        """
        self._link.call(lambda: self._pause() if self._closed or wanted() else self._resume())

    def close_intake(self) -> None:
        """Take no more jobs, for good: this process ends."""
        self._closed = True
        self._link.call(self._pause)

    def not_consuming(self) -> list[str]:
        """The queues that should be consumed and are not, unless on purpose."""
        return [] if self._paused else sorted(queue for queue in list(self._consumers) if not self._hears(queue))

    def unstarted(self) -> dict[str, int]:
        """How many messages of each queue were in hand and not begun at any one time lately, at most.

        Said of all others too, by the name '*': who says nothing about a queue may hold anything of it.
        """
        return {"*": 0, **(self._unstarted.report() + self._aside.count())}

    def on_ready(self, channel: SwiftChannel) -> None:
        channel.add_on_cancel_callback(self._cancelled)
        channel.on_answer = self._order.heard
        channel.on_delivery = partial(self._arrived, channel)
        if self._connection is not None:
            self._connection.on_delivery = channel.on_delivery
        self._start(channel, self._consumers)

    def on_lost(self) -> None:
        self._aside.lost()
        self._order.expect(queue for queue in self._consumers if queue != SWEEPS)
        self._unstarted.lost()

    def _add(self, queues: Collection[str], prefetch: int, on_delivery: OnDelivery) -> None:
        self._consumers.update(dict.fromkeys(queues, (prefetch, on_delivery)))
        if self.channel is not None and self.channel.is_open:
            self._start(self.channel, queues)

    def _start(self, channel: SwiftChannel, queues: Iterable[str]) -> None:
        """Each queue is heard as soon as it is there: RabbitMQ takes its time over hundreds of new ones."""
        with self.together():
            declare_exchange(channel)
            for queue in self._ranked(queues):
                declare_queue(channel, queue, self._queue_type)
                self._listen(channel, queue)

    def _listen(self, channel: SwiftChannel, queue: str) -> None:
        if channel.hears(queue) or self._refuses(queue):
            return
        self._aside.consumer_started(queue)
        channel.listen(queue, self._consumers[queue][0])
        if self._order.started(queue):
            channel.ask(queue, arguments(queue, self._queue_type))

    def _ranked(self, queues: Iterable[str]) -> list[str]:
        """Earliest phase first: a thread that has just become free takes what arrives first."""
        return sorted(queues, key=lambda queue: (self._order.rank(queue), queue))

    def _hears(self, queue: str) -> bool:
        channel = self.channel
        return channel is not None and channel.hears(queue)

    def _refuses(self, queue: str) -> bool:
        return self._paused and queue != SWEEPS

    def _cancelled(self, frame: Any) -> None:
        """RabbitMQ ended the consumer: somebody deleted its queue. Nobody else would tell us."""
        if self.channel is not None and (queue := self.channel.forget(frame.method.consumer_tag)):
            log.warning("RabbitMQ no longer has queue %s; it is declared again", queue)
            self._link.later(LISTEN_AGAIN, partial(self._add, [queue], *self._consumers[queue]))

    def _arrived(
        self, channel: SwiftChannel, consumer: str, tag: int, body: bytes, headers: dict[str, Any] | None = None
    ) -> None:
        self._deliver(queue_of(consumer), channel, tag, headers or {}, body)

    def _deliver(self, queue: str, channel: SwiftChannel, tag: int, headers: dict[str, Any], body: bytes) -> None:
        message = decode(queue, body)
        if message is None:
            channel.basic_nack(tag, requeue=False)
            return
        delivery = Delivery(message, channel, tag, queue, headers)
        if queue != SWEEPS:
            channel.busy.add(queue)
            self._unstarted.add(delivery)
            if self._paused:
                self._refuse(delivery)
                return
            if self._order.holds(delivery):
                return
        self._hand_out(delivery)

    def _refuse(self, delivery: Delivery) -> None:
        """A queue that was idle when this process paused has a message after all: it is for others."""
        self._unstarted.discard(delivery)
        with self.together():
            delivery.channel.leave(delivery.queue)
            self._return(delivery)

    def _hand_out(self, delivery: Delivery) -> None:
        try:
            self._consumers[delivery.queue][1](delivery)
        except Exception:
            # Raised on, it would end the connection, and the message would come back and end it again, for ever.
            log.exception(
                "queue %s: a message that could not be handed over was sent to the dead letters", delivery.queue
            )
            self._unstarted.discard(delivery)
            delivery.channel.basic_nack(delivery.tag, requeue=False)

    def _acknowledge(self, deliveries: list[Delivery]) -> None:
        self._discard([delivery for delivery in deliveries if not delivery.returned])

    def _discard(self, deliveries: list[Delivery]) -> None:
        channel, connection = self.channel, self._connection
        if channel is None or connection is None or not channel.is_open:
            return
        number = channel.channel_number
        if acks := [frames.ack(number, delivery.tag) for delivery in deliveries if delivery.channel is channel]:
            connection.emit(b"".join(acks))

    def _reject(self, delivery: Delivery) -> None:
        if delivery.live and delivery.channel is self.channel:
            delivery.channel.basic_nack(delivery.tag, requeue=False)

    def _requeue(self, deliveries: Iterable[Delivery]) -> None:
        with self.together():
            for delivery in deliveries:
                if delivery.channel is self.channel and delivery.channel.is_open:
                    delivery.channel.basic_nack(delivery.tag, requeue=True)

    def _set_aside(self, delivery: Delivery, seconds: float) -> None:
        if not delivery.live or delivery.channel is not self.channel:
            return
        if self._closed or monotonic() - delivery.arrived > unstarted.LONGEST_ASIDE:
            self._return(delivery)
            return
        self._link.later(seconds, partial(self._hand_out_again, delivery))
        prefetch, _ = self._consumers[delivery.queue]
        if self._aside.add(delivery, prefetch) and delivery.channel.hears(delivery.queue):
            delivery.channel.leave(delivery.queue)
            self._listen(delivery.channel, delivery.queue)

    def _hand_out_again(self, delivery: Delivery) -> None:
        self._aside.remove(delivery)
        if not delivery.live or delivery.channel is not self.channel:
            return
        if self._paused:
            self._return(delivery)
            return
        self._unstarted.add(delivery)
        self._hand_out(delivery)

    def _return(self, delivery: Delivery) -> None:
        delivery.returned = True
        self.give_back([delivery])

    def _pause(self) -> None:
        """Idle queues keep their consumers: a process with hundreds of them pauses and resumes all the time."""
        self._paused = True
        self._order.release()
        if self.channel is None or not self.channel.is_open:
            return
        with self.together():
            for queue in self.channel.heard() if self._closed else list(self.channel.busy):
                if queue != SWEEPS:
                    self.channel.leave(queue)
            if taken := list(self._unstarted.take()):
                self.give_back(taken)

    def _resume(self) -> None:
        if not self._paused:
            return
        self._paused = False
        if self.channel is not None and self.channel.is_open:
            with self.together():
                for queue in self._ranked(queue for queue in self._consumers if not self._hears(queue)):
                    self._listen(self.channel, queue)
