"""job.step used wrongly: each mistake has its sentence, and fails the job at once."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any

import pytest

from pipeline import Job
from pipeline.declare.errors import Misuse, Permanent
from pipeline.declare.services import Services
from pipeline.testing import FakeServices
from tests.rules.test_steps import Counted


class Kind(Services):
    """Of a phase that is async def, or not."""

    def __init__(self, *, asynchronous: bool) -> None:
        self.asynchronous = asynchronous


def blocks() -> str:
    raise AssertionError("it must not be called")


async def waits() -> str:
    raise AssertionError("it must not be called")


def test_an_async_function_in_a_def_phase_is_a_mistake() -> None:
    job = Job(services=Kind(asynchronous=False))
    with pytest.raises(Misuse, match="write the phase as async def"):
        job.step("fetch", waits)  # type: ignore[unused-coroutine]  # the mistake
    with pytest.raises(Misuse, match="returned a coroutine"):
        job.step("fetch", Counted(waits))


def test_a_def_function_in_an_async_phase_is_a_mistake() -> None:
    """It is not called: it would block the event loop."""

    async def phase() -> None:
        job = Job(services=Kind(asynchronous=True))
        with pytest.raises(Misuse, match=r"asyncio\.to_thread, blocks"):
            job.step("fetch", blocks)
        with pytest.raises(Misuse, match="nothing that can be awaited"):
            await job.step("fetch", lambda: 1)  # type: ignore[misc]

    asyncio.run(phase())


def test_a_forgotten_await_is_a_mistake() -> None:
    job = Job(services=Kind(asynchronous=True))
    forgotten = job.step("fetch", waits)
    with pytest.raises(Misuse, match=r"write await job\.step"):
        job.services.calls.check()
    forgotten.close()


def test_a_step_inside_a_step_is_a_mistake() -> None:
    job = Job()
    with pytest.raises(Misuse, match="inside a step"):
        job.step("outer", lambda: job.step("inner", Counted()))
    assert job.step("outer", Counted()) == "page"


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00b", "\ud800", 7])
def test_a_name_is_short_and_printable(name: Any) -> None:
    with pytest.raises(Misuse, match="1 to 200 printable characters"):
        Job().step(name, Counted())


def test_the_longest_name_is_fine() -> None:
    assert Job().step("é" * 200, Counted()) == "page"


def test_a_result_that_is_too_big_says_what_to_do() -> None:
    with pytest.raises(Permanent, match="store the data in a table or a file and return a reference"):
        Job().step("fetch", lambda: "x" * 65_535)
    assert len(Job().step("fetch", lambda: "x" * 65_534)) == 65_534


def test_what_json_cannot_say_is_a_mistake() -> None:
    with pytest.raises(Misuse, match="not valid JSON"):
        Job().step("fetch", lambda: float("nan"))
    with pytest.raises(Misuse, match="cannot be kept as JSON"):
        Job().step("fetch", object)


def test_a_type_that_cannot_travel_is_a_mistake_before_the_call() -> None:
    def lock() -> Thread:
        raise AssertionError("it must not be called")

    with pytest.raises(Misuse, match="cannot travel as JSON"):
        Job().step("fetch", lock)


def test_a_kept_result_that_no_longer_fits_asks_for_a_new_name() -> None:
    def count() -> int:
        return 1

    with pytest.raises(Misuse, match="give the step a new name"):
        Job(services=FakeServices(steps={"count": "many"})).step("count", count)


def test_a_thousand_steps_are_enough_for_a_phase() -> None:
    job = Job()
    for n in range(1000):
        job.step(f"s{n}", int, n)
    assert job.step("s7", int, 8) == 7
    with pytest.raises(Permanent, match="more than 1000 steps"):
        job.step("one more", int, 1)
