"""pika's connection with a shorter way for what there is most of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pika.adapters.select_connection import SelectConnection

from pipeline.broker import frames


class SwiftConnection(SelectConnection):
    """pika's connection, with a shorter way for what there is most of (see ``frames``).

    ``consumers`` take plain deliveries: no headers, one frame; pika reads all others. ``on_confirm`` hears which
    message was taken, and whether all before it were.
    """

    _frame_buffer: bytes

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.consumers: dict[bytes, Callable[[int, bytes], None]] = {}
        self.on_confirm: Callable[[int, bool], None] | None = None
        self._held: list[bytes] | None = None
        super().__init__(*args, **keywords)

    @contextmanager
    def corked(self) -> Iterator[None]:
        """What is sent meanwhile goes out in one piece: pika makes a system call and a packet of each frame."""
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
            consumer = self.consumers.get(plain.consumer) if plain else None
            if plain and consumer:
                self.bytes_received += plain.end - start
                start = plain.end
                consumer(plain.tag, plain.body)
            else:
                self._frame_buffer = data[start:end]
                start = end
                super()._on_data_available(b"")  # type: ignore[misc]
        self._frame_buffer = data[start:]

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
