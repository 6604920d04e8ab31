"""job.step without servers: a step runs once, and its result is remembered by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import Job
from pipeline.declare.errors import Cancelled, StaleClaim
from pipeline.testing import FakeServices

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


class Counted:
    """A function that counts its calls."""

    def __init__(self, answer: Callable[[], Any] = lambda: "page") -> None:
        self.calls = 0
        self._answer = answer

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.calls += 1
        return self._answer()


@dataclass
class Receipt:
    price: Decimal
    day: date


def test_a_step_runs_once_and_later_calls_get_its_result() -> None:
    """Also in a later attempt, which has the same services."""
    services, fetch = FakeServices(), Counted()
    for attempt in (1, 2):
        job = Job(attempt=attempt, services=services)
        assert [job.step("fetch", fetch, "a", b=1) for _ in range(3)] == ["page"] * 3
    assert fetch.calls == 1
    assert services.steps == {"fetch": '"page"'}


def test_a_test_says_what_earlier_attempts_kept() -> None:
    fetch = Counted()
    job = Job(services=FakeServices(steps={"fetch": ["a", "b"]}))
    assert job.step("fetch", fetch) == ["a", "b"]
    assert fetch.calls == 0


def test_a_step_that_fails_is_not_remembered() -> None:
    """Its error is the phase's, and the next call runs it again."""

    def fail() -> None:
        raise RuntimeError("no answer")

    job = Job()
    with pytest.raises(RuntimeError, match="no answer"):
        job.step("fetch", fail)
    assert job.step("fetch", Counted()) == "page"


@given(JSON)
def test_the_first_run_and_a_resumed_one_see_the_same(value: Any) -> None:
    """What comes back is what was encoded, in both."""
    services = FakeServices()
    first = Job(services=services).step("s", lambda: value)
    second = Job(services=services).step("s", Counted())
    assert first == second
    assert repr(first) == repr(second)


def test_a_result_has_the_type_that_its_function_names() -> None:
    def charge() -> Receipt:
        return Receipt(Decimal("9.99"), date(2026, 1, 2))

    services = FakeServices()
    for _ in range(2):
        assert Job(services=services).step("charge", charge) == Receipt(Decimal("9.99"), date(2026, 1, 2))
    assert services.steps == {"charge": '{"price":"9.99","day":"2026-01-02"}'}


def test_without_an_annotation_it_is_what_json_makes_of_it() -> None:
    """In the first run as well."""
    pair: object = Job().step("s", lambda: (1, 2))
    assert pair == [1, 2]


def test_each_call_gets_a_value_of_its_own() -> None:
    """Whoever changes it changes nobody else's."""
    job = Job()
    job.step("list", lambda: [1]).append(2)
    assert job.step("list", lambda: [0]) == [1]


async def _page() -> str:
    await asyncio.sleep(0)
    return "page"


def test_an_async_step_is_awaited_and_runs_once() -> None:
    """Also when several wait for it at the same time."""
    calls = 0

    async def fetch() -> str:
        nonlocal calls
        calls += 1
        return await _page()

    async def phase(job: Job) -> list[str]:
        return await asyncio.gather(*(job.step("fetch", fetch) for _ in range(5)))

    assert asyncio.run(phase(Job())) == ["page"] * 5
    assert calls == 1


def test_steps_run_beside_one_another() -> None:
    """Each of two waits for the other."""

    async def phase(job: Job) -> list[str]:
        here, there = asyncio.Event(), asyncio.Event()

        async def meet(mine: asyncio.Event, other: asyncio.Event) -> str:
            mine.set()
            await asyncio.wait_for(other.wait(), 5)
            return "met"

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(job.step("a", meet, here, there)),
                group.create_task(job.step("b", meet, there, here)),
            ]
        return [task.result() for task in tasks]

    assert asyncio.run(phase(Job())) == ["met", "met"]


def test_the_same_step_in_several_threads_runs_once() -> None:
    job, fetch, start = Job(), Counted(), Barrier(4)

    def run() -> None:
        start.wait()
        job.step("fetch", fetch)

    threads = [Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fetch.calls == 1


def test_to_thread_takes_the_annotation_of_what_it_calls() -> None:
    def charge(amount: int) -> Decimal:
        return Decimal(amount)

    async def phase(job: Job) -> Decimal:
        return await job.step("charge", asyncio.to_thread, charge, 3)

    assert asyncio.run(phase(Job())) == Decimal(3)


def test_a_keep_that_was_not_waited_for_is_repeated_and_the_function_is_not() -> None:
    """The phase gave up waiting while the result was on its way."""

    class Slow(FakeServices):
        patient = False

        async def keep_step(self, name: str, value: str) -> bool:
            if not self.patient:
                await asyncio.sleep(60)
            return await super().keep_step(name, value)

    services = Slow()
    fetch = Counted(_page)

    async def phase(job: Job) -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(job.step("fetch", fetch), 0.01)
        services.patient = True
        answer: str = await job.step("fetch", fetch)
        return answer

    assert asyncio.run(phase(Job(services=services))) == "page"
    assert fetch.calls == 1


def test_a_lost_job_keeps_nothing() -> None:
    class Lost(FakeServices):
        async def keep_step(self, name: str, value: str) -> bool:
            return False

    with pytest.raises(StaleClaim, match="step 'fetch' was not kept"):
        Job(services=Lost()).step("fetch", Counted())
    job, fetch = Job(), Counted()
    job.lost = "cancelled"
    with pytest.raises(Cancelled):
        job.step("fetch", fetch)
    assert fetch.calls == 0


def test_the_key_of_a_step_names_job_phase_and_step() -> None:
    job = Job(phase="charge")
    assert job.step_key("card") == f"{job.idempotency_key}:card"
    assert job.step_key("card") != job.step_key("mail")
