"""A source's breaker, with its state in a real PostgreSQL and calls to a real server."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pybreaker
import pytest

from actors.scrape.breaker import SourceFault, SourceState, guarded
from actors.scrape.config import ScrapeSettings
from actors.scrape.task import Source
from pipeline.declare.errors import Snooze
from tests.actors.scrape.stall import Bench

COINS = Source("coins", "coins", "items-api", "http://unused")


def test_five_failures_in_a_row_open_it_and_nobody_calls_any_more(bench: Bench) -> None:
    """The fifth costs nothing any more, the next do not call; the rate limit holds the others for five minutes."""
    bench.open()
    assert [bench.run(number) for number in range(5, 10)] == ["snooze"] * 5
    assert bench.stall.calls("coins") == 5 and bench.rate_limit_is_paused
    row = bench.row
    assert (row["failure_streak"], row["pause_reason"], row["times_opened"]) == (5, "breaker", 1)
    left = bench.stall.place.row("SELECT extract(epoch FROM paused_until - now()) AS s FROM sources")
    assert left is not None and 290 < left["s"] <= 300


def test_a_success_in_between_starts_the_count_again(bench: Bench) -> None:
    """Only failures in a row are a sick source."""
    bench.stall.sandbox.add_fault(match="/market/coins", status=500, times=4)
    assert [bench.run(number) for number in range(6)] == ["transient"] * 4 + ["done"] * 2
    row = bench.row
    assert (row["failure_streak"], row["open"]) == (0, None) and row["last_success_at"] is not None
    assert bench.stall.place.count("SELECT count(*) FROM source_failures") == 0


def test_one_probe_of_all_workers_and_its_success_closes(bench: Bench) -> None:
    """Eight jobs at once find the pause over: one calls, seven wait; then everybody may call."""
    bench.open()
    bench.let_the_pause_pass()
    bench.stall.sandbox.add_fault(match="/market/coins", delay=1.0, times=1)
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(bench.run, range(8))) == ["done"] + ["snooze"] * 7
    assert bench.stall.calls("coins") == 6
    assert (bench.row["failure_streak"], bench.row["paused_until"], bench.row["probes"]) == (0, None, 1)
    assert not bench.rate_limit_is_paused and bench.run(9) == "done"


def test_a_failed_probe_opens_it_again(bench: Bench) -> None:
    """For another five minutes, at no cost for the job."""
    bench.open()
    bench.let_the_pause_pass()
    bench.stall.sandbox.add_fault(match="/market/coins", cut=True)
    assert [bench.run(6), bench.run(7)] == ["snooze", "snooze"]
    assert bench.row["open"] and bench.row["times_opened"] == 2 and bench.rate_limit_is_paused
    assert bench.stall.calls("coins") == 6


def test_a_probe_whose_worker_died_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else probes while its time runs; the job itself may, when another worker takes it over."""
    bench.open()
    bench.let_the_pause_pass()
    settings = ScrapeSettings()
    dead, other = (bench.stall.job(bench.jobs[n], bench.intake, "coins") for n in (5, 6))
    assert SourceState(COINS, dead, settings).state == "half-open"
    assert [SourceState(COINS, job, settings).state for job in (other, dead)] == ["open", "half-open"]
    bench.stall.place.db.execute("UPDATE sources SET probe_until = now()")
    assert SourceState(COINS, other, settings).state == "half-open"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), Snooze(1, "shutdown")])
def test_an_interrupted_probe_says_nothing_and_the_next_job_may_probe(bench: Bench, error: BaseException) -> None:
    """It neither closes nor re-opens, and holds up nobody."""
    bench.open()
    bench.let_the_pause_pass()
    job = bench.stall.job(bench.jobs[5], bench.intake, "coins")

    async def interrupted() -> None:
        async with guarded(COINS, job, ScrapeSettings()):
            raise error

    with pytest.raises(type(error)):
        asyncio.run(interrupted())
    assert (bench.row["pause_reason"], bench.row["probe_by"]) == ("breaker", None) and not bench.rate_limit_is_paused
    assert bench.run(6) == "done" and bench.row["paused_until"] is None


def test_a_job_that_is_cancelled_while_it_enters_does_not_keep_the_probe(bench: Bench) -> None:
    """PostgreSQL made it the only one to probe when its coroutine had ended already."""
    bench.open()
    bench.let_the_pause_pass()
    job = bench.stall.job(bench.jobs[5], bench.intake, "coins")

    async def call() -> None:
        async with guarded(COINS, job, ScrapeSettings()):
            raise AssertionError("the call was made")

    async def cancelled() -> None:
        task = asyncio.create_task(call())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert (bench.row["probes"], bench.row["probe_by"]) == (1, None) and bench.run(6) == "done"


def test_a_call_that_fails_after_it_opened_costs_nothing(bench: Bench) -> None:
    """It was on its way when the others failed."""
    late = bench.stall.job(bench.jobs[9], bench.intake, "coins")

    async def call() -> None:
        async with guarded(COINS, late, ScrapeSettings()):
            await asyncio.to_thread(bench.open)
            raise SourceFault("answered 500")

    with pytest.raises(Snooze):
        asyncio.run(call())
    assert bench.row["times_opened"] == 1


def test_a_call_that_succeeds_after_it_opened_does_not_close_it(bench: Bench) -> None:
    """One answer that was on its way is no proof; the probe decides."""
    late = bench.stall.job(bench.jobs[9], bench.intake, "coins")

    async def call() -> None:
        async with guarded(COINS, late, ScrapeSettings()):
            await asyncio.to_thread(bench.open)

    asyncio.run(call())
    assert bench.row["open"] and bench.row["failure_streak"] == 5


def note(bench: Bench, job: UUID, outcome: str) -> None:
    """The engine's record of an attempt, as its retry writes it."""
    bench.stall.place.db.execute(
        "INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, finished_at, phase, outcome) VALUES (%s, 1, 1, now(), now(), 'price-collection', %s)",
        (job, outcome),
    )
    bench.stall.place.db.execute("UPDATE pipeline.jobs SET attempts = attempts + 1 WHERE id = %s", (job,))


def test_the_failures_that_opened_it_are_given_back_each_once(bench: Bench) -> None:
    """Also one whose failure was not yet written down at that moment: it is given back at the next step."""
    bench.stall.sandbox.add_fault(match="/market/coins", status=500, times=5)
    assert [bench.run(number) for number in range(4)] == ["transient"] * 4
    for number in range(3):
        note(bench, bench.jobs[number], "retried")
    assert bench.run(4) == "snooze"
    note(bench, bench.jobs[3], "retried")
    spent = "SELECT count(*) FROM pipeline.jobs WHERE attempts > 0"
    assert bench.stall.place.count(spent) == 1
    bench.let_the_pause_pass()
    assert bench.run(5) == "done" and bench.stall.place.count(spent) == 0
    assert bench.stall.place.count("SELECT count(*) FROM source_failures") == 0


def test_nothing_of_pybreakers_storage_is_left_to_its_silent_default() -> None:
    """Its class is not abstract: a forgotten override would do nothing, and say nothing."""
    wanted = {name for name in vars(pybreaker.CircuitBreakerStorage) if not name.startswith("_")} - {"name"}
    assert wanted <= set(vars(SourceState))


def test_threads_do_not_wait_for_one_anothers_calls(bench: Bench) -> None:
    """Four slow calls at once take the time of one: the far side sees them together."""
    bench.stall.sandbox.add_fault(match="/market/coins", delay=0.5)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(bench.run, range(4))) == ["done"] * 4
    assert bench.stall.sandbox.stats()["most_open"] == 4
