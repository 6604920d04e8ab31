"""Frames of our own say what pika's say, and pika reads whatever they are not for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pika
from hypothesis import given
from hypothesis import strategies as st
from pika import frame, spec

from pipeline.broker.outbound import SwiftConnection, ack_frame, message_frames

NAMES = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=60)
BODIES = st.binary(min_size=1, max_size=300)


def marshalled(*parts: Any) -> bytes:
    return b"".join(part.marshal() for part in parts)


def delivery(consumer: str, tag: int, body: bytes, headers: dict[str, Any] | None = None) -> bytes:
    properties = pika.BasicProperties(delivery_mode=2, priority=3, message_id="x", headers=headers)
    return marshalled(
        frame.Method(1, spec.Basic.Deliver(consumer, tag, False, "", "queue")),
        frame.Header(1, len(body), properties),
        *(frame.Body(1, body[n : n + 100]) for n in range(0, len(body), 100)),
    )


@given(NAMES, BODIES, st.integers(0, 9), NAMES, st.integers(1, 2047))
def test_a_message_has_pikas_bytes(queue: str, body: bytes, priority: int, ident: str, channel: int) -> None:
    """To the letter: RabbitMQ cannot tell who wrote it."""
    properties = pika.BasicProperties(
        content_type="application/json", delivery_mode=2, priority=priority, message_id=ident
    )
    expected = marshalled(
        frame.Method(channel, spec.Basic.Publish(exchange="", routing_key=queue, mandatory=True)),
        frame.Header(channel, len(body), properties),
        frame.Body(channel, body),
    )
    assert message_frames(channel, queue, body, priority, ident) == expected


@given(st.integers(1, 2047), st.integers(1, 2**63))
def test_an_acknowledgement_has_pikas_bytes(channel: int, tag: int) -> None:
    """Of this one message, and no other."""
    assert ack_frame(channel, tag) == frame.Method(channel, spec.Basic.Ack(tag)).marshal()


class Reader(SwiftConnection):
    """The reading half of a connection, without one."""

    def __init__(self, *, listens: bool = True) -> None:
        self._frame_buffer = b""
        self.bytes_received = 0
        self.confirmed: list[tuple[int, bool]] = []
        self.on_confirm = lambda tag, all_before: self.confirmed.append((tag, all_before))
        self.ours: list[tuple[str, int, bytes]] = []
        self.pikas: list[Any] = []
        self.on_delivery = (lambda *delivered: self.ours.append(delivered)) if listens else None

    def _process_frame(self, frame_value: Any) -> None:
        self.pikas.append(frame_value)

    def feed(self, data: bytes, cuts: list[int]) -> None:
        edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
        for start, end in pairwise(edges):
            self._on_data_available(data[start:end])


@given(st.lists(st.tuples(st.integers(1, 2**60), st.binary(min_size=1, max_size=90)), min_size=1, max_size=8))
def test_deliveries_that_come_together_are_ours(messages: list[tuple[int, bytes]]) -> None:
    """Tag and body as they were sent, in their order, and nothing for pika to do."""
    reader = Reader()
    reader.feed(b"".join(delivery("ctag1", tag, body) for tag, body in messages), [])
    assert reader.ours == [("ctag1", tag, body) for tag, body in messages]
    assert reader.pikas == []


@given(
    st.lists(st.tuples(st.sampled_from(["ack", "nack", "return"]), st.integers(1, 2**60), st.booleans()), max_size=12),
    st.lists(st.integers(0, 2000), max_size=12),
)
def test_confirms_are_ours_and_refusals_are_pikas(answers: list[tuple[str, int, bool]], cuts: list[int]) -> None:
    """With their number, and whether all before it are meant, wherever the network cut the stream."""
    methods: dict[str, Callable[[int, bool], Any]] = {
        "ack": spec.Basic.Ack,
        "nack": spec.Basic.Nack,
        "return": lambda tag, several: spec.Basic.Return(312, "NO_ROUTE", "", f"queue-{tag}-{several}"),
    }
    reader = Reader(listens=False)
    reader.feed(marshalled(*(frame.Method(1, methods[kind](tag, several)) for kind, tag, several in answers)), cuts)
    assert reader.confirmed == [(tag, several) for kind, tag, several in answers if kind == "ack"]
    expected = [methods[kind](tag, several) for kind, tag, several in answers if kind != "ack"]
    assert [one.method.encode() for one in reader.pikas] == [one.encode() for one in expected]
    assert reader._frame_buffer == b""


KINDS = st.sampled_from(["ours", "headers", "long", "heartbeat"])


@given(st.lists(KINDS, min_size=1, max_size=12), st.lists(st.integers(0, 10_000), max_size=12))
def test_however_the_bytes_arrive_nothing_is_lost_or_doubled(kinds: list[str], cuts: list[int]) -> None:
    """Each message goes to us or, whole, to pika, wherever the network cut the stream."""
    reader, stream = Reader(), b""
    for number, kind in enumerate(kinds, 1):
        body = b"x" * (250 if kind == "long" else 50)
        if kind == "heartbeat":
            stream += marshalled(frame.Heartbeat())
        else:
            headers = {"x-death": "y"} if kind == "headers" else None
            stream += delivery("ctag1", number, body, headers)
    reader.feed(stream, cuts)
    by_pika, rest = [], list(reader.pikas)
    while rest:
        first = rest.pop(0)
        if isinstance(first, frame.Heartbeat):
            continue
        head = rest.pop(0)
        got = b""
        while len(got) < head.body_size:
            got += rest.pop(0).fragment
        by_pika.append(first.method.delivery_tag)
    ours = [tag for _, tag, _ in reader.ours]
    expected = [number for number, kind in enumerate(kinds, 1) if kind != "heartbeat"]
    assert sorted(ours + by_pika) == expected
    assert ours == sorted(ours)
    assert by_pika == [number for number, kind in enumerate(kinds, 1) if kind in ("headers", "long")]
    assert reader._frame_buffer == b""
    assert sum(kind == "heartbeat" for kind in kinds) == sum(isinstance(f, frame.Heartbeat) for f in reader.pikas)
