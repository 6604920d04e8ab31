"""What a process says it holds: the most there was at any one time lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pipeline.broker import inbound
from pipeline.broker.inbound import Inbound, Intake, Unstarted
from pipeline.broker.outbound import Link


def fetched(hand: Unstarted, queue: str, times: int = 1) -> list[Any]:
    deliveries: list[Any] = [Fetched(queue) for _ in range(times)]
    for delivery in deliveries:
        hand.add(delivery)
    return deliveries


@dataclass(eq=False)
class Fetched:
    """Deliveries are told apart by identity."""

    queue: str
    returned: bool = False
    priority: int = 0


def test_only_queues_with_messages_are_reported() -> None:
    """A heartbeat is as long as what there is to say, however many queues a process serves."""
    hand = Unstarted()
    one, *_ = fetched(hand, "a", 2)
    fetched(hand, "b")
    hand.discard(one)
    assert hand.report() == {"a": 2, "b": 1}
    assert Unstarted().report() == {}


def test_a_process_says_that_it_holds_nothing_of_all_other_queues() -> None:
    """Silence about a queue means an older version, which may hold anything."""
    inbound = Inbound(Link("test"), list, "classic")
    intake = Intake(["a"], 1)
    inbound._add(intake, ["a"])
    fetched(intake.unstarted, "a", 2)
    assert inbound.unstarted() == {"*": 0, "a": 2}


def test_what_was_begun_or_given_back_since_the_last_report_still_counts() -> None:
    """Whoever asked RabbitMQ meanwhile did not see it there."""
    hand = Unstarted()
    one, *_ = fetched(hand, "a", 3)
    hand.discard(one)
    assert [delivery.returned for delivery in hand.take()] == [True, True]
    assert not hand
    assert [hand.report()["a"] for _ in range(4)] == [3, 3, 3, 0]


def test_a_message_that_is_discarded_twice_counts_once() -> None:
    """It is begun, and then cannot be handed over."""
    hand = Unstarted()
    one, _ = fetched(hand, "a", 2)
    hand.discard(one)
    hand.discard(one)
    for _ in range(3):
        hand.report()
    assert hand.report() == {"a": 1}


def test_after_a_broken_connection_they_count_until_rabbitmq_has_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps them for the old connection and delivers them to nobody."""
    now = 100.0
    monkeypatch.setattr(inbound, "monotonic", lambda: now)
    hand = Unstarted()
    fetched(hand, "a", 2)
    hand.lost()
    for _ in range(4):
        reported = hand.report()["a"]
    assert reported == 2
    now += inbound.NOTICED
    assert hand.report() == {}
