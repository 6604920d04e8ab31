"""pika's connection and channel with a shorter way for what there is most of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from pika import spec
from pika.adapters.select_connection import SelectConnection
from pika.channel import Channel

from pipeline.broker import frames


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
    """pika's connection, with a shorter way for what there is most of (see ``frames``).

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
        while end := frames.next_frame(data, start):
            if self.on_confirm and (confirmed := frames.confirm(data, start)):
                self.bytes_received += end - start
                start = end
                self.on_confirm(*confirmed)
                continue
            plain = frames.plain_delivery(data, start, end)
            if plain is frames.UNFINISHED:
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
