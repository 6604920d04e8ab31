"""The consuming side of a process: all its queues on one channel, and what Dramatiq's consumer thread sees of it."""

from __future__ import annotations

import itertools
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from queue import Empty, SimpleQueue
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import orjson
from dramatiq import Message, Worker
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.worker import ConsumerThread

from pipeline.broker.boot_order import BootOrder
from pipeline.broker.discreet import Discreet
from pipeline.broker.outbound import Link, Side, ack_frame, queue_of
from pipeline.broker.topology import SWEEPS, QueueType, arguments, declare_exchange, declare_queue

if TYPE_CHECKING:
    from pika.connection import Parameters

    from pipeline.broker.outbound import SwiftChannel

log = logging.getLogger("pipeline.broker")

BODY_LIMIT = 256 * 1024
# Tells the deliveries of a process apart, so that a claim that is repeated can be recognised.
_numbers = itertools.count(1)


class Delivery(Discreet):
    """A message with the channel that delivered it: only that channel may acknowledge it.

    ``deferred`` is set by whoever takes over the acknowledgement, to be made after a commit.
    ``returned`` is set when the message was given back to the broker before anybody started on it.
    ``abandoned`` is set when its thread is stuck and the job was settled without it.
    ``looks`` counts how often its job could not be claimed because another transaction held the row.
    """

    def __init__(
        self, message: Message[Any], channel: SwiftChannel, tag: int, queue: str, headers: dict[str, Any]
    ) -> None:
        super().__init__(message)
        # Dramatiq asks for these a dozen times a message, and its proxy looks each of them up anew.
        self.queue_name, self.actor_name, self.message_id = message.queue_name, message.actor_name, message.message_id
        self.args, self.kwargs, self.options = message.args, message.kwargs, message.options
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.headers = headers
        self.id = next(_numbers)
        self.arrived = monotonic()
        self.deferred = False
        self.returned = False
        self.abandoned = False
        self.looks = 0
        self.attempt: Any = None

    def continuing(self, message: Message[Any]) -> Delivery:
        """The job continues with its next phase and this message: acknowledging the new one acknowledges it."""
        following = Delivery(message, self.channel, self.tag, message.queue_name, {})
        following.arrived = self.arrived
        return following

    @property
    def priority(self) -> int:
        """Of the job, as its message says."""
        stated = self.options.get("broker_priority")
        return stated if type(stated) is int else 0

    @property
    def live(self) -> bool:
        """Whether the message is still ours: its connection stands and it was not given back."""
        return not self.returned and bool(self.channel.is_open)

    @property
    def revived(self) -> bool:
        """Whether the message came back from a dead-letter queue."""
        return "x-death" in self.headers or "x-pipeline-dead" in self.headers


def decode(queue: str, body: bytes) -> Message[Any] | None:
    """The message, or None if it belongs to the dead letters; the reason is logged."""
    if len(body) > BODY_LIMIT:
        log.error(
            "queue %s: a message of %d bytes was sent to the dead letters; the limit is %d",
            queue,
            len(body),
            BODY_LIMIT,
        )
        return None
    try:
        # Not Message.decode: the encoder is the application's, which may have set one of its own.
        message: Message[Any] = Message(**orjson.loads(body))
    except (orjson.JSONDecodeError, TypeError) as error:
        log.error("queue %s: a message that is not Dramatiq's was sent to the dead letters: %s", queue, error)
        return None
    if wrong := _wrong(message):
        log.error("queue %s: a message was sent to the dead letters: %s", queue, wrong)
        return None
    return message if message.queue_name == queue else message.copy(queue_name=queue)


def _wrong(message: Message[Any]) -> str | None:
    """What Dramatiq takes as given and would stumble over; a message with an ``eta`` it would keep in memory."""
    if not type(message.queue_name) is type(message.actor_name) is type(message.message_id) is str:
        return "its names are no text"
    if type(message.options) is not dict or type(message.kwargs) is not dict:
        return "its options or keywords are no object"
    return "it asks to be delayed, and nothing waits here" if "eta" in message.options else None


# RabbitMQ gives a connection up after two missed heartbeats of ten seconds; until then it keeps what it had sent there.
NOTICED = 30.0
REPORTS = 3
# A message is not kept unacknowledged for longer than this, in seconds: RabbitMQ closes the channel after half an hour.
LONGEST_ASIDE = 600.0


class Unstarted:
    """Messages in hand, and the most there were of each queue at any one time during the last three reports.

    Whoever compares RabbitMQ's ready messages with the jobs that wait asks what was in hand at a moment in the past,
    and messages come, are begun and are given back all the time: only the most there were is an answer that holds.
    """

    def __init__(self) -> None:
        self._held: set[Delivery] = set()
        self._now: Counter[str] = Counter()
        self._priorities: Counter[int] = Counter()
        self._most: deque[Counter[str]] = deque([Counter()], maxlen=REPORTS)
        self._doubtful: list[tuple[float, Counter[str]]] = []
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def highest(self) -> int:
        """The highest priority among them; -1 if there are none."""
        return max((priority for priority, held in self._priorities.copy().items() if held), default=-1)

    def add(self, delivery: Delivery) -> None:
        with self._lock:
            self._held.add(delivery)
            self._priorities[delivery.priority] += 1
            self._now[delivery.queue] += 1
            most = self._most[-1]
            most[delivery.queue] = max(most[delivery.queue], self._now[delivery.queue])

    def discard(self, delivery: Delivery) -> None:
        """Somebody begins with it, or it cannot be handed over."""
        with self._lock:
            if delivery in self._held:
                self._held.remove(delivery)
                self._priorities[delivery.priority] -= 1
                self._now[delivery.queue] -= 1

    def take(self) -> set[Delivery]:
        """All of them, to be given back: each is marked, so that nobody begins with it any more."""
        with self._lock:
            taken, self._held = self._held, set()
            self._now.clear()
            self._priorities.clear()
            for delivery in taken:
                delivery.returned = True
            return taken

    def lost(self) -> None:
        """The connection broke: RabbitMQ may not know yet, and hold them for us."""
        with self._lock:
            self._doubtful.append((monotonic() + NOTICED, self._now))
            self._held, self._now = set(), Counter()
            self._priorities.clear()

    def report(self) -> Counter[str]:
        """The queues of which there was anything."""
        with self._lock:
            self._doubtful = [(until, counts) for until, counts in self._doubtful if monotonic() < until]
            doubtful = sum((counts for _, counts in self._doubtful), Counter())
            most: Counter[str] = reduce(or_, self._most, Counter())
            self._most.append(+self._now)
            return most + doubtful


class Aside:
    """Messages that wait for a moment: nothing can be said about their jobs yet, and no thread waits for them.

    Counted since the consumer of their queue came up. Changed in the AMQP thread only.
    """

    def __init__(self) -> None:
        self._held: set[Delivery] = set()
        self._of_consumer: Counter[str] = Counter()

    def add(self, delivery: Delivery, prefetch: int) -> bool:
        """True if they use up half of what their queue's consumer may hold: it needs a new one."""
        if delivery not in self._held:
            self._held.add(delivery)
            self._of_consumer[delivery.queue] += 1
        return self._of_consumer[delivery.queue] * 2 >= prefetch

    def remove(self, delivery: Delivery) -> None:
        """It is handed out again."""
        self._held.discard(delivery)

    def consumer_started(self, queue: str) -> None:
        """RabbitMQ counts by consumer: a new one starts from zero."""
        self._of_consumer[queue] = 0

    def lost(self) -> None:
        """The connection broke: they will be delivered again."""
        self._held, self._of_consumer = set(), Counter()

    def count(self) -> Counter[str]:
        """How many of each queue."""
        return Counter(delivery.queue for delivery in self._held.copy())


OnDelivery = Callable[[Delivery], None]
LISTEN_AGAIN = 0.2


def _nobody(delivery: Delivery) -> None:
    raise LookupError(f"nobody takes messages of {delivery.queue} yet")


@dataclass(eq=False)
class Intake:
    """What one kind of place takes messages from: the threads of a process, or its event loop.

    Each kind pauses alone, when all its places are busy. ``prefetch`` is what RabbitMQ may send ahead for each queue.
    """

    queues: Collection[str]
    prefetch: int
    on_delivery: OnDelivery = _nobody
    unstarted: Unstarted = field(default_factory=Unstarted)
    paused: bool = False


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
        self._intakes: dict[str, Intake] = {}
        self._closed = False
        self._draining = False
        self._aside = Aside()
        # Queues whose consumer ended, until RabbitMQ answers for the new one: it may refuse that, again and again.
        self._unsure: set[str] = set()
        # What becomes of messages that nobody has begun with, in the AMQP thread.
        self.give_back: Callable[[list[Delivery]], None] = self._requeue

    def expect(self, queues: Iterable[str]) -> None:
        """Hand nothing out before all of these phases are consumed: they come up one by one."""
        self._link.call(lambda: self._order.expect(queues))

    def consume(self, intake: Intake) -> None:
        """Consume its queues from now on, also after every reconnect."""
        self._link.call(lambda: self._add(intake, intake.queues))

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
        self._intakes[delivery.queue].unstarted.discard(delivery)
        return delivery.live

    def begin_here(self, delivery: Delivery) -> None:
        """Hand out a delivery that this process made itself."""
        self._intakes[delivery.queue].on_delivery(delivery)

    def consumes(self, queue: str) -> bool:
        """Whether this process takes messages of the queue just now."""
        intake = self._intakes.get(queue)
        return intake is not None and not intake.paused and self._hears(queue)

    def has_waiting(self, queue: str, above: int | None) -> bool:
        """Whether a message waits for a place of the queue's kind: any, or one of a higher priority."""
        unstarted = self._intakes[queue].unstarted
        return bool(unstarted) if above is None else unstarted.highest() > above

    def pause_if(self, intake: Intake, wanted: Callable[[], bool]) -> None:
        """Take no more jobs if ``wanted`` says so when it is asked, in the AMQP thread; otherwise take them again.

        Those nobody started on are given back: others may have free places. Sweeps are taken all the same: they have
        a thread of their own.
        """
        self._link.call(lambda: self._pause(intake) if self._shut or wanted() else self._resume(intake))

    def drain(self, wanted: bool) -> None:
        """Take no more jobs until told otherwise; those nobody started on are given back."""
        self._draining = wanted
        self._link.call(self._pause_all if wanted else self._resume_all)

    def close_intake(self) -> None:
        """Take no more jobs, for good: this process ends."""
        self._closed = True
        self._link.call(self._pause_all)

    def not_consuming(self) -> list[str]:
        """The queues that should be consumed and are not, unless on purpose."""
        wanted = (queue for queue, intake in list(self._intakes.items()) if not intake.paused)
        return sorted(queue for queue in wanted if queue in self._unsure or not self._hears(queue))

    def unstarted(self) -> dict[str, int]:
        """How many messages of each queue were in hand and not begun at any one time lately, at most.

        Said of all others too, by the name '*': who says nothing about a queue may hold anything of it.
        """
        most = sum((intake.unstarted.report() for intake in self._all()), self._aside.count())
        return {"*": 0, **most}

    def on_ready(self, channel: SwiftChannel) -> None:
        channel.add_on_cancel_callback(self._cancelled)
        channel.on_answer = self._answered
        channel.on_delivery = partial(self._arrived, channel)
        if self._connection is not None:
            self._connection.on_delivery = channel.on_delivery
        self._start(channel, self._intakes)

    def on_lost(self) -> None:
        self._aside.lost()
        phases = {queue for queue in self._intakes if queue != SWEEPS}
        self._unsure |= phases
        self._order.expect(phases)
        for intake in self._all():
            intake.unstarted.lost()

    def _all(self) -> set[Intake]:
        return set(self._intakes.copy().values())

    def _add(self, intake: Intake, queues: Collection[str]) -> None:
        self._intakes.update(dict.fromkeys(queues, intake))
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
        channel.listen(queue, self._intakes[queue].prefetch)
        if self._order.started(queue) or queue in self._unsure:
            channel.ask(queue, arguments(queue, self._queue_type))

    def _answered(self, queue: str) -> None:
        self._unsure.discard(queue)
        self._order.heard(queue)

    def _ranked(self, queues: Iterable[str]) -> list[str]:
        """Earliest phase first: a thread that has just become free takes what arrives first."""
        return sorted(queues, key=lambda queue: (self._order.rank(queue), queue))

    def _hears(self, queue: str) -> bool:
        channel = self.channel
        return channel is not None and channel.hears(queue)

    def _refuses(self, queue: str) -> bool:
        return self._intakes[queue].paused

    def _cancelled(self, frame: Any) -> None:
        """RabbitMQ ended the consumer, and nobody else would tell us.

        Somebody deleted its queue; or, since RabbitMQ 4.3, it held a message of a quorum queue for too long: what it
        held is delivered again, and late acknowledgements are ignored.
        """
        if self.channel is not None and (queue := self.channel.forget(frame.method.consumer_tag)):
            log.warning(
                "RabbitMQ no longer has queue %s, or waited too long for an acknowledgement; declaring it again", queue
            )
            self._unsure.add(queue)
            self._link.later(LISTEN_AGAIN, partial(self._add, self._intakes[queue], [queue]))

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
            intake = self._intakes[queue]
            channel.busy.add(queue)
            intake.unstarted.add(delivery)
            if intake.paused:
                self._refuse(delivery)
                return
            if not self._order.over:
                self._order.hold(delivery)
                return
        self._hand_out(delivery)

    def _refuse(self, delivery: Delivery) -> None:
        """A queue that was idle when this process paused has a message after all: it is for others."""
        self._intakes[delivery.queue].unstarted.discard(delivery)
        with self.together():
            delivery.channel.leave(delivery.queue)
            self._return(delivery)

    def _hand_out(self, delivery: Delivery) -> None:
        try:
            self._intakes[delivery.queue].on_delivery(delivery)
        except Exception:
            # Raised on, it would end the connection, and the message would come back and end it again, for ever.
            log.exception(
                "queue %s: a message that could not be handed over was sent to the dead letters", delivery.queue
            )
            self._intakes[delivery.queue].unstarted.discard(delivery)
            delivery.channel.basic_nack(delivery.tag, requeue=False)

    def _acknowledge(self, deliveries: list[Delivery]) -> None:
        self._discard([delivery for delivery in deliveries if not delivery.returned])

    def _discard(self, deliveries: list[Delivery]) -> None:
        channel, connection = self.channel, self._connection
        if channel is None or connection is None or not channel.is_open:
            return
        number = channel.channel_number
        if acks := [ack_frame(number, delivery.tag) for delivery in deliveries if delivery.channel is channel]:
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
        if self._closed or monotonic() - delivery.arrived > LONGEST_ASIDE:
            self._return(delivery)
            return
        self._link.later(seconds, partial(self._hand_out_again, delivery))
        if self._aside.add(delivery, self._intakes[delivery.queue].prefetch) and delivery.channel.hears(delivery.queue):
            delivery.channel.leave(delivery.queue)
            self._listen(delivery.channel, delivery.queue)

    def _hand_out_again(self, delivery: Delivery) -> None:
        self._aside.remove(delivery)
        if not delivery.live or delivery.channel is not self.channel:
            return
        intake = self._intakes[delivery.queue]
        if intake.paused:
            self._return(delivery)
            return
        intake.unstarted.add(delivery)
        self._hand_out(delivery)

    def _return(self, delivery: Delivery) -> None:
        delivery.returned = True
        self.give_back([delivery])

    def _pause(self, intake: Intake) -> None:
        """Idle queues keep their consumers: a process with hundreds of them pauses and resumes all the time."""
        intake.paused = True
        self._order.release()
        if self.channel is None or not self.channel.is_open:
            return
        with self.together():
            for queue in self.channel.heard() if self._shut else list(self.channel.busy):
                if self._intakes[queue] is intake:
                    self.channel.leave(queue)
            if taken := list(intake.unstarted.take()):
                self.give_back(taken)

    def _pause_all(self) -> None:
        for intake in self._all():
            if SWEEPS not in intake.queues:
                self._pause(intake)

    @property
    def _shut(self) -> bool:
        """No job is wanted, whatever is free."""
        return self._closed or self._draining

    def _resume_all(self) -> None:
        if not self._shut:
            for intake in self._all():
                self._resume(intake)

    def _resume(self, intake: Intake) -> None:
        if not intake.paused:
            return
        intake.paused = False
        if self.channel is not None and self.channel.is_open:
            with self.together():
                for queue in self._ranked(queue for queue in intake.queues if not self._hears(queue)):
                    self._listen(self.channel, queue)


class PhasesThread(ConsumerThread):
    """One for all phase queues of a process. Dramatiq would start one for each, to wait for what comes elsewhere."""

    def __init__(self, worker: Worker, intakes: Sequence[Intake]) -> None:
        super().__init__(
            broker=worker.broker,
            queue_name="all phases",
            prefetch=worker.queue_prefetch,
            work_queue=worker.work_queue,
            worker_timeout=worker.worker_timeout,
        )
        self.intakes = intakes


def consume_in_one_thread(worker: Worker, threads: Intake, *others: Intake) -> PhasesThread:
    """Before the worker boots: it adds a consumer for each queue that has none, and then these have one.

    ``Worker.consumers`` is where its threads look for whoever acknowledges a queue's messages, too. Everything that
    Dramatiq does to all of them, it may do to the same one again: pause, resume, stop, join, close.
    """
    thread = PhasesThread(worker, [threads, *others])
    threads.on_delivery = thread.handle_message
    queues = [queue for intake in thread.intakes for queue in intake.queues]
    if queues:
        worker.consumers.update(dict.fromkeys(queues, thread))
        thread.start()
    return thread


class PhaseConsumer(Consumer):
    """Hands deliveries straight to Dramatiq's work queue or to the event loop; the consumer thread itself only waits.

    Reconnecting is the link's business, so this consumer never breaks.
    """

    def __init__(
        self,
        inbound: Inbound,
        intakes: Iterable[Intake],
        timeout: float,
        *,
        on_close: Callable[[], None],
    ) -> None:
        self._inbound = inbound
        self._timeout = timeout
        self._closed = Event()
        self._on_close = on_close
        for intake in intakes:
            inbound.consume(intake)

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
        inbound.consume(Intake([queue], 1, self._arrived.put))

    def __next__(self) -> MessageProxy | None:
        try:
            delivery = self._arrived.get(timeout=self._timeout)
        except Empty:
            return None
        self._run(delivery)
        self._inbound.ack([delivery])
        return None
