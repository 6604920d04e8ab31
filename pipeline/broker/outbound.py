"""The publishing side of a process, and the one thread that speaks AMQP for both sides."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from itertools import count, takewhile
from struct import Struct
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pika
from pika import spec
from pika.adapters.select_connection import IOLoop, SelectConnection
from pika.channel import Channel
from pika.exceptions import AMQPConnectionError

from pipeline.broker.topology import QueueType, declare

if TYPE_CHECKING:
    from pika.connection import Connection, Parameters

# ---- frames: those that there are thousands of a second. Everything else is pika's, which makes several objects of
# each frame and moves the rest of its buffer after every one of them.

METHOD, HEADER, BODY, END = 1, 2, 3, b"\xce"
OVERHEAD = 8
# RabbitMQ's frames hold 128 KiB unless told otherwise, and no client may ask for less than 4 KiB.
ONE_FRAME = 4000
_FRAME = Struct(">BHL")
_HEAD = Struct(">BHLHHQH")
_SIZE_AND_FLAGS = Struct(">QH")
_TAG = Struct(">Q")
_PUBLISH = b"\x00\x3c\x00\x28\x00\x00\x00"  # class 60, method 40, reserved, the default exchange
_DELIVER = b"\x00\x3c\x00\x3c"
_ACK = Struct(">BHLHHQBc")
_CONFIRM = b"\x00\x3c\x00\x50"
_TAG_AND_BIT = Struct(">Q?")
_MANDATORY = b"\x01"
_JSON = b"\x10application/json"
# content_type, delivery_mode, priority, message_id
_FLAGS = 0x8000 | 0x1000 | 0x0800 | 0x0080
_HAS_HEADERS = 0x2000
_PERSISTENT = 2


def message_frames(channel: int, queue: str, body: bytes, priority: int, message_id: str) -> bytes:
    """A persistent, mandatory message for the queue. Its body must fit into one frame."""
    ident = message_id.encode()
    properties = b"%b%c%c%c%b" % (_JSON, _PERSISTENT, priority, len(ident), ident)
    head = _HEAD.pack(HEADER, channel, 14 + len(properties), 60, 0, len(body), _FLAGS)
    return b"".join((_publish(channel, queue), head, properties, END, _FRAME.pack(BODY, channel, len(body)), body, END))


@lru_cache(maxsize=1024)
def _publish(channel: int, queue: str) -> bytes:
    name = queue.encode()
    payload = _PUBLISH + bytes([len(name)]) + name + _MANDATORY
    return _FRAME.pack(METHOD, channel, len(payload)) + payload + END


def ack_frame(channel: int, tag: int) -> bytes:
    """This one message is done with."""
    return _ACK.pack(METHOD, channel, 13, 60, 80, tag, 0, END)


def read_confirm(data: bytes, start: int) -> tuple[int, bool] | None:
    """RabbitMQ has taken the message of this number, or all up to it; None if the frame there is something else."""
    if data[start] != METHOD or data[start + 7 : start + 11] != _CONFIRM:
        return None
    tag, all_before = _TAG_AND_BIT.unpack_from(data, start + 11)
    return tag, all_before


class Plain(NamedTuple):
    """A delivery without headers, in one piece; ``end`` is where the next frame begins."""

    consumer: bytes
    tag: int
    body: bytes
    end: int


# A delivery of which the rest is still on its way.
UNFINISHED = Plain(b"", 0, b"", 0)


def next_frame(data: bytes, start: int) -> int:
    """Where the frame that begins at ``start`` ends; 0 if it is not there yet."""
    if len(data) - start < OVERHEAD:
        return 0
    end: int = start + OVERHEAD + _FRAME.unpack_from(data, start)[2]
    return end if end <= len(data) else 0


def read_delivery(data: bytes, start: int, end: int) -> Plain | None:
    """The delivery whose first frame lies there, UNFINISHED, or None if it is something else, or for pika to read."""
    if data[start] != METHOD or data[start + 7 : start + 11] != _DELIVER:
        return None
    header_end = next_frame(data, end)
    if not header_end:
        return UNFINISHED
    size, flags = _SIZE_AND_FLAGS.unpack_from(data, end + 11)
    if data[end] != HEADER or flags & _HAS_HEADERS or not 0 < size <= ONE_FRAME:
        return None
    body_end = next_frame(data, header_end)
    if not body_end:
        return UNFINISHED
    if size != body_end - header_end - OVERHEAD or data[header_end] != BODY:
        return None
    after = start + 12 + data[start + 11]
    (tag,) = _TAG.unpack_from(data, after)
    return Plain(data[start + 12 : after], tag, data[header_end + 7 : body_end - 1], body_end)


def queue_of(consumer: str) -> str:
    """The queue that a consumer of this name listens to, or did."""
    return consumer.rpartition("#")[0]


class SwiftChannel(Channel):
    """pika's channel, with consumers that come and go by the hundred, one for each queue.

    pika waits for RabbitMQ's answer to each of them before it says anything else, and gives back what arrives for one
    that it has just cancelled. Here nothing is waited for, and every delivery goes to ``on_delivery``, with the name of
    its consumer. ``busy``: queues that have delivered something since their consumer came.
    """

    _send_method: Callable[[Any], None]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.on_delivery: Callable[[str, int, bytes, dict[str, Any] | None], None] | None = None
        self.on_answer: Callable[[str], None] = lambda queue: None
        self.busy: set[str] = set()
        self._names: dict[str, str] = {}
        self._numbers = count(1)
        self._prefetch = 0
        self.add_callback(lambda _: None, [spec.Basic.QosOk], one_shot=False)
        self.add_callback(lambda answer: self.on_answer(answer.method.queue), [spec.Queue.DeclareOk], one_shot=False)

    def hears(self, queue: str) -> bool:
        return queue in self._names

    def heard(self) -> list[str]:
        """All queues that have a consumer."""
        return list(self._names)

    def listen(self, queue: str, prefetch: int) -> None:
        """Under a new name each time: RabbitMQ counts what a consumer holds by its name."""
        if prefetch != self._prefetch:
            self._send_method(spec.Basic.Qos(prefetch_count=prefetch))
            self._prefetch = prefetch
        name = self._names[queue] = f"{queue}#{next(self._numbers)}"
        self._send_method(spec.Basic.Consume(queue=queue, consumer_tag=name, nowait=True))

    def leave(self, queue: str) -> None:
        """What is on its way is still delivered. Nothing happens if nobody listens."""
        self.busy.discard(queue)
        if name := self._names.pop(queue, None):
            cancel: Any = spec.Basic.Cancel
            self._send_method(cancel(consumer_tag=name, nowait=True))

    def forget(self, name: str) -> str | None:
        """RabbitMQ ended this consumer. Returns its queue, unless it had been left before."""
        queue = queue_of(name)
        if self._names.get(queue) != name:
            return None
        self.busy.discard(queue)
        del self._names[queue]
        return queue

    def ask(self, queue: str, arguments: dict[str, Any]) -> None:
        """A question that the queue answers, to ``on_answer``, after it has delivered what its consumers may have."""
        self._send_method(spec.Queue.Declare(queue=queue, durable=True, arguments=arguments))

    def _on_deliver(self, method_frame: Any, header_frame: Any, body: bytes) -> None:
        if self.on_delivery is not None:
            method = method_frame.method
            self.on_delivery(method.consumer_tag, method.delivery_tag, body, header_frame.properties.headers)


class SwiftConnection(SelectConnection):
    """pika's connection, with a shorter way for what there is most of (see the frames above).

    ``on_delivery`` takes plain deliveries, with the name of their consumer: no headers, one frame; pika reads all
    others. ``on_confirm`` hears which message was taken, and whether all before it were.
    """

    _frame_buffer: bytes

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.on_delivery: Callable[[str, int, bytes], None] | None = None
        self.on_confirm: Callable[[int, bool], None] | None = None
        self._held: list[bytes] | None = None
        super().__init__(*args, **keywords)

    @contextmanager
    def corked(self) -> Iterator[None]:
        """What is sent meanwhile goes out in one piece: pika makes a system call and a packet of each frame."""
        if self._held is not None:
            yield
            return
        held: list[bytes] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
            if held and self.is_open:
                self._emit(b"".join(held))

    def _on_data_available(self, data_in: bytes) -> None:
        data, start = self._frame_buffer + data_in, 0
        while end := next_frame(data, start):
            if self.on_confirm and (confirmed := read_confirm(data, start)):
                self.bytes_received += end - start
                start = end
                self.on_confirm(*confirmed)
                continue
            plain = read_delivery(data, start, end)
            if plain is UNFINISHED:
                break
            if plain and self.on_delivery:
                self.bytes_received += plain.end - start
                start = plain.end
                self.on_delivery(plain.consumer.decode(), plain.tag, plain.body)
            else:
                self._frame_buffer = data[start:end]
                start = end
                super()._on_data_available(b"")  # type: ignore[misc]
        self._frame_buffer = data[start:]

    def _create_channel(self, channel_number: int, on_open_callback: Any) -> SwiftChannel:
        return SwiftChannel(self, channel_number, on_open_callback)

    def emit(self, data: bytes) -> None:
        """Send frames that were made elsewhere."""
        self._adapter_emit_data(data)

    def _adapter_emit_data(self, data: bytes) -> None:
        if self._held is None:
            self._emit(data)
        else:
            self._held.append(data)

    def _emit(self, data: bytes) -> None:
        super()._adapter_emit_data(data)  # type: ignore[misc]


log = logging.getLogger("pipeline.broker")

RECONNECT = (0.1, 0.3, 1.0, 2.0)
# The thread is started again when it fails. If it keeps failing for so many seconds, the process ends.
GIVE_UP_AFTER = 30.0
START_AGAIN = 0.5


def _nothing() -> None:
    """A timer that has fired already."""


def _plain_thread(name: str, run: Callable[[], None]) -> Thread:
    return Thread(target=run, name=name, daemon=True)


class Link:
    """An I/O loop in a thread. Everything that touches a connection runs in it, by ``call``.

    ``guarded`` makes the thread: one that takes the process with it, should it fail for good.
    """

    def __init__(self, name: str, guarded: Callable[[str, Callable[[], None]], Thread] = _plain_thread) -> None:
        self._loop = IOLoop()
        self._thread = guarded(name, self._run)
        self._sides: list[Side] = []
        self._stopping = False
        # Kept here, and not in the loop alone: should the loop fail, the next one continues with them.
        self._calls: deque[Callable[[], None]] = deque()
        self._timers: dict[int, tuple[float, Callable[[], None]]] = {}
        self._timer_numbers = count()

    def start(self) -> None:
        """Start the thread; connections are opened as their sides are added."""
        self._thread.start()

    def add(self, side: Side) -> None:
        """Let ``side`` connect and stay connected until ``stop``."""
        self._sides.append(side)
        self.call(side.connect)

    def call(self, work: Callable[[], None]) -> None:
        """Run ``work`` in the loop's thread, soon."""
        self._calls.append(work)
        self._loop.add_callback_threadsafe(self._work_off)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Run ``work`` in the loop's thread after a while. Only from that thread."""
        number = next(self._timer_numbers)
        self._timers[number] = (monotonic() + seconds, work)
        self._loop.call_later(seconds, lambda: self._fire(number))

    def _fire(self, number: int) -> None:
        _, work = self._timers.pop(number, (0.0, _nothing))
        work()

    def _work_off(self) -> None:
        while self._calls:
            self._calls.popleft()()

    def stop(self, timeout: float = 5.0) -> None:
        """Close the connections in order and end the thread."""
        if not self._thread.is_alive():
            return
        self._stopping = True
        self.call(self._close_all)
        self._thread.join(timeout)

    @property
    def loop(self) -> IOLoop:
        return self._loop

    def _run(self) -> None:
        failing_since: float | None = None
        while True:
            started = monotonic()
            try:
                self._loop.start()
                return
            except Exception:
                log.exception("the AMQP thread failed; it is started again")
            if failing_since is None or monotonic() - started > GIVE_UP_AFTER:
                failing_since = monotonic()
            self._begin_again(failing_since + GIVE_UP_AFTER)

    def _begin_again(self, until: float) -> None:
        """A new loop with new connections: what was on its way is in doubt, as after any lost connection."""
        while True:
            sleep(START_AGAIN)
            try:
                self._loop = IOLoop()
                break
            except OSError:
                if monotonic() > until:
                    raise
        for number, (moment, _) in self._timers.items():
            self._loop.call_later(max(moment - monotonic(), 0.0), partial(self._fire, number))
        for side in self._sides:
            side.drop()
            self.call(side.connect)

    def _close_all(self) -> None:
        for side in self._sides:
            side.close()
        self.later(0.2, self._loop.stop)


class Side:
    """A connection with one channel that comes back by itself after every loss."""

    def __init__(self, link: Link, parameters: Callable[[], list[Parameters]]) -> None:
        self._link = link
        self._parameters = parameters
        self._failures = 0
        self._closing = False
        self._connection: SwiftConnection | None = None
        self.channel: SwiftChannel | None = None

    def connect(self) -> None:
        """Open the connection; every failure schedules the next try."""
        if self._closing:
            return
        choices = self._parameters()
        try:
            self._connection = SwiftConnection(
                choices[self._failures % len(choices)],
                on_open_callback=self._opened,
                on_open_error_callback=self._lost,
                on_close_callback=self._lost,
                custom_ioloop=self._link.loop,
            )
        except OSError as error:
            # No file descriptor left, say: there may be one again in a moment.
            self._connection = None
            self._try_again(error)

    def drop(self) -> None:
        """Forget the connection: its loop is gone."""
        was_open, self.channel, self._connection = self.channel is not None, None, None
        if was_open:
            self.on_lost()

    def close(self) -> None:
        """Close for good."""
        self._closing = True
        if self._connection is not None and self._connection.is_open:
            self._connection.close()

    def together(self) -> AbstractContextManager[None]:
        """What is sent meanwhile goes to RabbitMQ in one piece."""
        return self._connection.corked() if self._connection is not None else nullcontext()

    def on_ready(self, channel: SwiftChannel) -> None:
        """The channel is open: declare, consume, …"""

    def on_lost(self) -> None:
        """Everything that was on its way over the channel is in doubt."""

    def _opened(self, connection: Connection) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _channel_opened(self, channel: Channel) -> None:
        assert isinstance(channel, SwiftChannel)
        channel.add_on_close_callback(self._channel_closed)
        self.channel = channel
        self._failures = 0
        self.on_ready(channel)

    def _channel_closed(self, channel: Channel, reason: Exception) -> None:
        if self._connection is not None and self._connection.is_open and not self._closing:
            log.error("RabbitMQ closed the channel: %s", reason)
            self._failures += 1
            self._connection.close()

    def _lost(self, connection: Connection, reason: object) -> None:
        if connection is not self._connection:
            return
        was_open, self.channel = self.channel is not None, None
        if was_open:
            self.on_lost()
        if not self._closing:
            self._try_again(reason)

    def _try_again(self, reason: object) -> None:
        delay = RECONNECT[min(self._failures, len(RECONNECT) - 1)]
        self._failures += 1
        log.warning("no connection to RabbitMQ (%s); trying again in %.1f s", _say(reason), delay)
        self._link.later(delay, self.connect)


def _say(reason: object) -> str:
    """One line about a lost connection; never the address, which may hold a password."""
    if isinstance(reason, AMQPConnectionError) and reason.args and isinstance(reason.args[0], Exception):
        reason = reason.args[0]
    return f"{type(reason).__name__}: {reason}".split("\n", 1)[0][:200]


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


def _alarmed(_: object, frame: Any) -> None:
    log.warning("RabbitMQ takes no messages (%s); jobs wait until it does", frame.method.reason)


def _relieved(*_: object) -> None:
    log.info("RabbitMQ takes messages again")


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
            self._connection.add_on_connection_blocked_callback(_alarmed)
            self._connection.add_on_connection_unblocked_callback(_relieved)
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
        if message.headers is None and len(message.body) <= ONE_FRAME and self._connection is not None:
            data = message_frames(channel.channel_number, message.queue, message.body, message.priority, ident)
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
