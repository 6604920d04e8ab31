"""Interrupts that come before the attempt begins, and decisions that overtake one another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.broker.inbound import Inbound, Intake
from pipeline.broker.outbound import Link
from pipeline.declare.phase import PhaseSpec
from pipeline.journey import unclaimed
from pipeline.journey.attempt import Attempt
from pipeline.journey.checkpoint import Interrupted
from pipeline.worker.process import Saturation
from tests.attempts import attempt


def claim() -> Attempt:
    return attempt(PhaseSpec("triple", "second"))


@pytest.mark.parametrize("reason", ["cancelled", "lost", "time_limit", "shutdown"])
def test_an_attempt_that_was_told_before_it_began_does_not_begin(reason: str) -> None:
    """It had gone on to its next phase and waited for a thread."""
    early = claim()
    early.interrupt(reason)
    with pytest.raises(Interrupted), early:
        pytest.fail("it began")
    assert early.reason == reason


def test_an_attempt_is_settled_by_its_thread_or_without_it_and_never_twice() -> None:
    """Whoever comes first."""
    thread_first, given_up_first = claim(), claim()
    assert thread_first.finish() and not thread_first.give_up()
    assert given_up_first.give_up() and not given_up_first.finish()
    assert not given_up_first.give_up(), "and given up once"
    assert (thread_first.delivery.abandoned, given_up_first.delivery.abandoned) == (False, True)


class Loop:
    """The AMQP thread's to-do list, worked off in the order of the calls."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call(self, work: Callable[[], None]) -> None:
        self.calls.append(work)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        self.calls.append(work)

    def run(self) -> None:
        while self.calls:
            self.calls.pop(0)()


def saturated(loop: Loop) -> tuple[Inbound, Intake, Saturation]:
    """One place, and its intake."""
    inbound, intake = Inbound(cast("Link", loop), list, "classic"), Intake(["orders.check"], 1)
    inbound.consume(intake)
    loop.run()
    return inbound, intake, Saturation(cast("Link", loop), inbound, intake, 1)


def test_a_job_that_ends_while_the_pause_is_decided_leaves_nobody_paused() -> None:
    """The pause was asked for before the resume, and carried out after it: the worker was paused for ever."""
    loop = Loop()
    _, intake, saturation = saturated(loop)
    saturation.started()
    loop.calls.pop(0)()
    look = loop.calls.pop(0)
    look()
    saturation.ended()
    loop.calls.reverse()
    loop.run()
    assert not intake.paused


def test_a_worker_that_stops_takes_nothing_more_when_its_jobs_end() -> None:
    """It was saturated when it was told to stop; its first job to end made it consume again."""
    loop = Loop()
    inbound, intake, saturation = saturated(loop)
    saturation.started()
    loop.run()
    inbound.close_intake()
    loop.run()
    saturation.ended()
    loop.run()
    assert intake.paused


def test_the_thread_that_speaks_amqp_starts_again_when_it_fails() -> None:
    """And everything that was on its way is in doubt, as after a lost connection."""
    link, connected, dropped = Link("test-amqp"), threading.Semaphore(0), threading.Event()
    side: Any = SimpleNamespace(connect=connected.release, drop=dropped.set, close=lambda: None)
    link.start()
    link.add(side)
    assert connected.acquire(timeout=5)

    def fail() -> None:
        raise OSError(24, "Too many open files")

    later = threading.Event()
    link.call(lambda: link.later(0.1, later.set))
    link.call(fail)
    behind = threading.Event()
    link.call(behind.set)
    assert connected.acquire(timeout=5) and dropped.is_set()
    assert link._thread.is_alive()
    assert behind.wait(5) and later.wait(5), "what was asked for before and meanwhile is done by the next loop"
    link.stop()
    assert not link._thread.is_alive()


@pytest.mark.parametrize(
    ("looks", "gone"),
    [
        ([True, True], True),
        ([True, False], False),
        ([False, False], False),
        ([False, True, True], True),
        ([False, True, False], False),
    ],
)
def test_a_holder_is_gone_only_at_two_looks_in_a_row(
    looks: list[bool], gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not gone yet is looked at again: RabbitMQ may notice a death before PostgreSQL does."""
    monkeypatch.setattr(unclaimed, "SECOND_LOOK", 0.0)
    left = list(looks)
    assert unclaimed._seen_twice(lambda: left.pop(0)) is gone
    assert left == []
