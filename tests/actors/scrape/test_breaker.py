"""A source's breaker, with its state in a real PostgreSQL and calls to a real server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID

import httpx
import pybreaker
import pytest

from actors.scrape.breaker import SourceFault, SourceState, guarded
from actors.scrape.config import ScrapeSettings
from actors.scrape.price_collection import price_collection
from actors.scrape.task import Source
from pipeline.rules.errors import Permanent, Transient, Wait
from tests.actors.scrape.stall import Stall

COINS = Source("coins", "coins", "items-api", "http://unused")


class Bench:
    """One sick source and as many jobs for it as a test needs."""

    def __init__(self, stall: Stall, jobs: int = 12) -> None:
        self.stall = stall
        self.intake = stall.intake()
        stall.source("coins")
        self.jobs = stall.collect(self.intake, ["coins"] * jobs)

    def run(self, number: int) -> str:
        """Run a job's phase; what became of it."""
        try:
            price_collection(self.stall.job(self.jobs[number], self.intake, "coins"))
        except (Wait, Transient, Permanent) as error:
            return type(error).__name__.lower()
        return "done"

    def open(self) -> None:
        self.stall.sandbox.add_fault(match="/market/coins", status=500, times=5)
        assert [self.run(number) for number in range(5)] == ["transient"] * 4 + ["wait"]

    def let_the_pause_pass(self) -> None:
        for table, name in (("sources", "id = 'coins'"), ("lanes", "name = 'source:coins'")):
            self.stall.place.db.execute(f"UPDATE {table} SET paused_until = now() - interval '1 second' WHERE {name}")

    @property
    def row(self) -> dict[str, object]:
        return self.stall.breaker("coins")

    @property
    def lane_is_paused(self) -> bool:
        return bool(
            self.stall.place.count("SELECT count(*) FROM lanes WHERE name = 'source:coins' AND paused_until > now()")
        )


@pytest.fixture
def bench(quiet: Stall) -> Bench:
    return Bench(quiet)


def test_five_failures_in_a_row_open_it_and_nobody_calls_any_more(bench: Bench) -> None:
    """The fifth costs nothing any more, the next do not call; the lane holds the others for five minutes."""
    bench.open()
    assert [bench.run(number) for number in range(5, 10)] == ["wait"] * 5
    assert bench.stall.calls("coins") == 5 and bench.lane_is_paused
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
        assert sorted(pool.map(bench.run, range(8))) == ["done"] + ["wait"] * 7
    assert bench.stall.calls("coins") == 6
    assert (bench.row["failure_streak"], bench.row["paused_until"], bench.row["probes"]) == (0, None, 1)
    assert not bench.lane_is_paused and bench.run(9) == "done"


def test_a_failed_probe_opens_it_again(bench: Bench) -> None:
    """For another five minutes, at no cost for the job."""
    bench.open()
    bench.let_the_pause_pass()
    bench.stall.sandbox.add_fault(match="/market/coins", cut=True)
    assert [bench.run(6), bench.run(7)] == ["wait", "wait"]
    assert bench.row["open"] and bench.row["times_opened"] == 2 and bench.lane_is_paused
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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Wait(1, "shutdown")])
def test_an_interrupted_probe_says_nothing_and_the_next_job_may_probe(bench: Bench, error: BaseException) -> None:
    """It neither closes nor re-opens, and holds up nobody."""
    bench.open()
    bench.let_the_pause_pass()
    job = bench.stall.job(bench.jobs[5], bench.intake, "coins")
    with pytest.raises(type(error)), guarded(COINS, job, ScrapeSettings()):
        raise error
    assert (bench.row["pause_reason"], bench.row["probe_by"]) == ("breaker", None) and not bench.lane_is_paused
    assert bench.run(6) == "done" and bench.row["paused_until"] is None


def test_a_call_that_fails_after_it_opened_costs_nothing(bench: Bench) -> None:
    """It was on its way when the others failed."""
    late = bench.stall.job(bench.jobs[9], bench.intake, "coins")
    with pytest.raises(Wait), guarded(COINS, late, ScrapeSettings()):
        bench.open()
        raise SourceFault("answered 500")
    assert bench.row["times_opened"] == 1


def test_a_call_that_succeeds_after_it_opened_does_not_close_it(bench: Bench) -> None:
    """One answer that was on its way is no proof; the probe decides."""
    late = bench.stall.job(bench.jobs[9], bench.intake, "coins")
    with guarded(COINS, late, ScrapeSettings()):
        bench.open()
    assert bench.row["open"] and bench.row["failure_streak"] == 5


@pytest.mark.parametrize(
    "fault", [{"status": 503, "retry_after": "1"}, {"cut": True}, {"garbage": True}, {"status": 408}]
)
def test_what_counts_as_a_failure_of_the_source(bench: Bench, fault: dict[str, object]) -> None:
    """5xx, network errors and answers that cannot be read; each costs the job one execution."""
    bench.stall.sandbox.add_fault(match="/market/coins", **fault)
    assert bench.run(0) == "transient" and bench.row["failure_streak"] == 1


def test_a_request_for_rest_is_no_failure_and_is_obeyed_by_all(bench: Bench) -> None:
    """One 429: nobody calls before its time, the breaker stays out of it, and time alone ends the pause."""
    bench.stall.sandbox.add_fault(match="/market/coins", status=429, retry_after="30", times=1)
    assert [bench.run(0), bench.run(1)] == ["wait", "wait"] and bench.stall.calls("coins") == 1
    assert (bench.row["failure_streak"], bench.row["pause_reason"]) == (0, "retry_after") and bench.lane_is_paused
    bench.let_the_pause_pass()
    assert bench.run(1) == "done" and bench.row["probes"] == 0


def test_a_refusal_is_the_jobs_problem(bench: Bench) -> None:
    """404 fails the job and says nothing against the source."""
    bench.stall.sandbox.add_fault(match="/market/coins", status=404)
    assert bench.run(0) == "permanent" and bench.row["failure_streak"] == 0


def note(bench: Bench, job: UUID, outcome: str) -> None:
    """The engine's record of an attempt, as its retry writes it."""
    bench.stall.place.db.execute(
        "INSERT INTO attempts (job_id, fence, attempt, ready_at, finished_at, phase, outcome) VALUES (%s, 1, 1, now(), now(), 'price-collection', %s)",
        (job, outcome),
    )
    bench.stall.place.db.execute("UPDATE jobs SET attempts = attempts + 1 WHERE id = %s", (job,))


def test_the_failures_that_opened_it_are_given_back_each_once(bench: Bench) -> None:
    """Also one whose failure was not yet written down at that moment: it is given back at the next step."""
    bench.stall.sandbox.add_fault(match="/market/coins", status=500, times=5)
    assert [bench.run(number) for number in range(4)] == ["transient"] * 4
    for number in range(3):
        note(bench, bench.jobs[number], "retried")
    assert bench.run(4) == "wait"
    note(bench, bench.jobs[3], "retried")
    spent = "SELECT count(*) FROM jobs WHERE attempts > 0"
    assert bench.stall.place.count(spent) == 1
    bench.let_the_pause_pass()
    assert bench.run(5) == "done" and bench.stall.place.count(spent) == 0
    assert bench.stall.place.count("SELECT count(*) FROM source_failures") == 0


def test_a_job_in_the_sources_lane_waits_at_the_gate_and_another_by_the_clock(bench: Bench) -> None:
    """The gate lets the first go as soon as the pause ends; nobody would wake the second."""
    bench.open()
    alone = bench.stall.place.row("SELECT pipeline_submit('scrape', '{}') AS id")
    assert alone is not None
    for job_id, low, high in ((bench.jobs[6], 0, 1), (alone["id"], 200, 300)):
        with pytest.raises(Wait) as wait:
            price_collection(bench.stall.job(job_id, bench.intake, "coins"))
        assert low < wait.value.seconds <= high and wait.value.reason == "breaker"


def test_the_source_is_not_asked_before_its_turn(bench: Bench) -> None:
    """The job comes back at the moment kept for it."""
    lanes: list[str] = []

    def later(lane: str, calls: int) -> None:
        lanes.append(f"{lane} {calls}")
        raise Wait(7.0, "rate_limit")

    job = replace(bench.stall.job(bench.jobs[0], bench.intake, "coins"), take_turn=later)
    with pytest.raises(Wait) as wait:
        price_collection(job)
    assert (wait.value.seconds, lanes, bench.stall.calls("coins")) == (7.0, ["source:coins 1"], 0)


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


def _always(error: Exception) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def test_a_timeout_is_a_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every error of the network is."""
    monkeypatch.setattr("actors.scrape.price_collection.fetch", _always(httpx.ReadTimeout("too slow")))
    assert bench.run(0) == "transient" and "ReadTimeout" in str(bench.row["last_error"])


def test_no_connection_is_kept_between_calls(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that its server closes just then would count against the source."""
    sent: list[dict[str, str]] = []

    def noted(*_: object, headers: dict[str, str], **__: object) -> object:
        sent.append(headers)
        raise httpx.ConnectError("nobody there")

    monkeypatch.setattr("actors.scrape.price_collection.fetch", noted)
    assert bench.run(0) == "transient" and sent[0]["Connection"] == "close"
