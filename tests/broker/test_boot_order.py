"""Deliveries are held back until every queue has been heard, then handed out by phase."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pipeline.broker.boot_order import LONGEST_WAIT, BootOrder

RANKS = {"first": 0, "second": 1, "third": 2}


class Scene:
    """An order, what it handed out, and the timers it set."""

    def __init__(self) -> None:
        self.handed_out: list[str] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.order = BootOrder(
            RANKS.__getitem__,
            lambda delivery: self.handed_out.append(delivery.queue),
            lambda seconds, work: self.timers.append((seconds, work)),
        )

    def arrive(self, *queues: str) -> None:
        for queue in queues:
            delivery: Any = SimpleNamespace(queue=queue)
            if not self.order.over:
                self.order.hold(delivery)
            else:
                self.handed_out.append(queue)


def test_the_earliest_phase_is_first_whoever_came_up_first() -> None:
    """Within a queue the order of arrival stays."""
    scene = Scene()
    scene.order.expect(RANKS)
    for queue in ("third", "second", "first"):
        assert scene.order.started(queue)
        scene.arrive(queue, queue)
        assert scene.handed_out == []
        scene.order.heard(queue)
    assert scene.handed_out == ["first", "first", "second", "second", "third", "third"]
    scene.arrive("third")
    assert scene.handed_out[-1] == "third", "once all were heard, nothing is held"
    assert not scene.order.started("third")


def test_a_queue_that_never_comes_up_does_not_silence_the_others() -> None:
    """Two seconds, from when the first consumer comes up."""
    scene = Scene()
    scene.order.expect(RANKS)
    assert scene.timers == []
    scene.order.started("third")
    scene.order.started("second")
    scene.arrive("third", "second")
    [(seconds, work)] = scene.timers
    assert seconds == LONGEST_WAIT
    work()
    assert scene.handed_out == ["second", "third"]


def test_after_a_reconnect_it_begins_anew() -> None:
    """What was held is void, and so is the timer of then."""
    scene = Scene()
    scene.order.expect(RANKS)
    scene.order.started("third")
    scene.arrive("third")
    scene.order.expect(RANKS)
    scene.timers[0][1]()
    scene.arrive("second", "first")
    assert scene.handed_out == []
    for queue in RANKS:
        scene.order.started(queue)
        scene.order.heard(queue)
    assert scene.handed_out == ["first", "second"]
