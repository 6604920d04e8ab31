"""The AMQP frames that there are thousands of a second: a message out, a message in, and what either side says to it.

Everything else is pika's.

pika makes several objects of each frame and moves the rest of its buffer after every one of them.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

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


def message(channel: int, queue: str, body: bytes, priority: int, message_id: str) -> bytes:
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


def ack(channel: int, tag: int) -> bytes:
    """This one message is done with."""
    return _ACK.pack(METHOD, channel, 13, 60, 80, tag, 0, END)


def confirm(data: bytes, start: int) -> tuple[int, bool] | None:
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


def plain_delivery(data: bytes, start: int, end: int) -> Plain | None:
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
