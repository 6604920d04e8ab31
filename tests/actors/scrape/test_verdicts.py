"""What a source's answers mean for it and for the job; when a job may ask at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest

from actors.scrape.price_collection import price_collection
from pipeline.declare.errors import Snooze
from pipeline.testing import FakeServices
from tests.actors.scrape.stall import Bench


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
    assert [bench.run(0), bench.run(1)] == ["snooze", "snooze"] and bench.stall.calls("coins") == 1
    assert (bench.row["failure_streak"], bench.row["pause_reason"]) == (0, "retry_after") and bench.rate_limit_is_paused
    bench.let_the_pause_pass()
    assert bench.run(1) == "done" and bench.row["probes"] == 0


def test_a_refusal_is_the_jobs_problem(bench: Bench) -> None:
    """404 fails the job and says nothing against the source."""
    bench.stall.sandbox.add_fault(match="/market/coins", status=404)
    assert bench.run(0) == "permanent" and bench.row["failure_streak"] == 0


def test_a_job_in_the_sources_rate_limit_waits_at_the_gate_and_another_by_the_clock(bench: Bench) -> None:
    """The gate lets the first go as soon as the pause ends; nobody would wake the second."""
    bench.open()
    alone = bench.stall.place.row("SELECT pipeline.submit('scrape', '{}') AS id")
    assert alone is not None
    for job_id, low, high in ((bench.jobs[6], 0, 1), (alone["id"], 200, 300)):
        with pytest.raises(Snooze) as wait:
            asyncio.run(price_collection(bench.stall.job(job_id, bench.intake, "coins")))
        assert low < wait.value.seconds <= high and wait.value.reason == "breaker"


def test_the_source_is_not_asked_before_the_permit_is_valid(bench: Bench) -> None:
    """The job comes back at the moment kept for it."""
    rate_limits: list[str] = []

    def later(rate_limit: str, calls: int) -> None:
        rate_limits.append(f"{rate_limit} {calls}")
        raise Snooze(7.0, "rate_limit")

    job = bench.stall.job(bench.jobs[0], bench.intake, "coins")
    job = replace(job, services=FakeServices(take_permit=later, read=job.services.read))
    with pytest.raises(Snooze) as wait:
        asyncio.run(price_collection(job))
    assert (wait.value.seconds, rate_limits, bench.stall.calls("coins")) == (7.0, ["source:coins 1"], 0)


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
