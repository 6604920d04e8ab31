"""The client against the sandbox's API: real shapes, and how each kind of trouble ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from actors.match.config import STRANGER, WIKIDATA, MatchSettings
from actors.match.decide import ProjectSettings
from actors.match.entity_match import candidates, entity_match, merged
from actors.match.records import Record
from actors.match.store import Task
from actors.match.wikidata import SlowDown, Wikidata
from pipeline.declare.errors import GiveUp, Permanent, Retry, Snooze, classify
from pipeline.declare.job import Job
from pipeline.testing import FakeServices
from sandbox import Sandbox

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job(kept: list[Mapping[str, Any]] | None = None, permits: list[tuple[str, int]] | None = None, **row: Any) -> Job:
    def keep(_: str, values: Mapping[str, Any]) -> bool:
        assert kept is not None
        kept.append(values)
        return True

    return Job(
        body={"project_id": 1, "task_id": 7, "dataset_entry_id": 7},
        services=FakeServices(
            keep=keep,
            read=lambda statement, values: [row] if row else [],
            take_permit=lambda rate_limit, calls: permits.append((rate_limit, calls)) if permits is not None else None,
        ),
    )


def test_search_and_entities_speak_wikidatas_shapes(settings: MatchSettings) -> None:
    """A typo in one language, aliases, dates, types; what is gone is left out."""
    wikidata = Wikidata(settings)
    [first, *_] = asyncio.run(wikidata.search("Takeda Harukki", "en", 5))
    [found] = asyncio.run(wikidata.entities([first, "Q1"], ("en", "ja")))
    assert (found.label, found.types) == ("Takeda Haruki", frozenset({"Q5"}))
    assert {term.text for term in found.terms} >= {"武田春樹", "Haruki Takeda"}
    assert found.dates["P569"][0].year > 1700
    assert asyncio.run(wikidata.search("Nobody Ever Known", "en", 5)) == []


def test_the_real_address_is_asked_once_there_is_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anything set, the sandbox; five calls a second for strangers, more for those who are known."""
    monkeypatch.delenv("WIKIDATA_TOKEN", raising=False)
    assert MatchSettings().api.endswith(":8099/w/api.php") and MatchSettings().calls_per_second == STRANGER == 5
    monkeypatch.setenv("WIKIDATA_TOKEN", "secret-token")
    assert MatchSettings().api == WIKIDATA and MatchSettings().calls_per_second > STRANGER
    assert "secret-token" not in repr(MatchSettings())
    assert MatchSettings().headers["Authorization"] == "Bearer secret-token"


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ({"status": 500}, Retry()),
        ({"status": 404}, GiveUp()),
        ({"garbage": True}, Retry()),
        ({"cut": True}, Retry()),
    ],
)
def test_each_kind_of_trouble_ends_as_it_should(
    sandbox: Sandbox, settings: MatchSettings, fault: dict[str, Any], verdict: object
) -> None:
    """Trouble that may pass is tried again; a refusal is final."""
    sandbox.add_fault(match="/w/", **fault)
    with pytest.raises(Exception) as caught:  # which one is the subject of the test
        asyncio.run(Wikidata(settings).search("Jane", "en", 5))
    assert classify(caught.value, NOW) == verdict


def test_a_refused_question_fails_with_wikidatas_own_words(settings: MatchSettings) -> None:
    """Errors come with status 200; the client reads them all the same."""
    with pytest.raises(Permanent, match="badinteger"):
        asyncio.run(Wikidata(settings).search("Jane", "en", 500))
    with pytest.raises(Permanent, match="no-such-entity"):
        asyncio.run(Wikidata(settings).entities(["P31"], ("en",)))


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), (format_datetime(datetime.now(UTC) + timedelta(minutes=50)), 100, 3000), ("", 5, 5)],
    ids=["seconds", "date", "none"],
)
def test_a_429_pauses_the_rate_limit_and_costs_nothing(
    sandbox: Sandbox,
    settings: MatchSettings,
    monkeypatch: pytest.MonkeyPatch,
    *,
    header: str,
    least: float,
    most: float,
) -> None:
    """Seconds or a date; without either, a pause of the setting's length. It is no progress of the job."""
    sandbox.add_fault(match="/w/", status=429, retry_after=header)
    rests: list[tuple[str, float, str]] = []
    monkeypatch.setattr("actors.match.entity_match.pause_rate_limit", lambda *values: rests.append(values))
    kept: list[Mapping[str, Any]] = []
    with pytest.raises(Snooze) as caught:
        asyncio.run(candidates(job(kept), Task(7, Record("Jane"), ProjectSettings())))
    assert least <= caught.value.seconds <= most and caught.value.reason == "retry_after" and caught.value.asked
    [(rate_limit, seconds, reason)] = rests
    assert (rate_limit, reason) == ("wikidata", "retry_after") and least <= seconds <= most and kept == []


def test_a_busy_server_that_says_so_in_json_is_obeyed(settings: MatchSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """``maxlag`` comes with status 200 and a Retry-After."""
    from pipeline.http.client import Fetched

    said = Fetched("u", "u", 200, httpx.Headers({"retry-after": "3"}), b'{"error": {"code": "maxlag"}}', 0)

    async def fetched(url: str, **rest: object) -> Fetched:
        return said

    monkeypatch.setattr("actors.match.wikidata.fetch", fetched)
    with pytest.raises(SlowDown) as caught:
        asyncio.run(Wikidata(settings).search("Jane", "en", 5))
    assert caught.value.seconds == 3


def test_the_phase_takes_one_permit_for_all_its_calls_and_keeps_the_ranked_list(settings: MatchSettings) -> None:
    """One search a language and one call for all entities; small result, list with reasons in the write."""
    permits: list[tuple[str, int]] = []
    row: dict[str, Any] = {
        "name": "Haruki Takeda",
        "data": {"type": "human"},
        "found": None,
        "settings": {"languages": ["en", "ja"]},
    }
    done = asyncio.run(entity_match(job(permits=permits, **row)))
    assert sum(calls for _, calls in permits) >= 3 and {rate_limit for rate_limit, _ in permits} == {"wikidata"}
    assert done.result is not None and done.result["decision"] == "matched" and done.write is not None


def test_a_call_that_is_late_asks_for_another_permit_and_nothing_is_asked_twice(
    sandbox: Sandbox, settings: MatchSettings
) -> None:
    """If that permit is far away, the searches made so far are kept; the next attempt continues from there."""
    sandbox.add_fault(match="/w/", delay=0.6)  # the bucket of five at five a second allows half a second
    kept: list[Mapping[str, Any]] = []
    task = Task(7, Record("Takeda Haruki"), ProjectSettings())
    first = job(kept)
    first.services = FakeServices(keep=first.services.keep, take_permit=_far_away_the_second_time())
    with pytest.raises(Snooze):
        asyncio.run(candidates(first, task))
    [values] = kept
    assert json.loads(values["found"])["en"] and sandbox.stats()["requests"] == 1
    again = replace(task, found=json.loads(values["found"]))
    assert asyncio.run(candidates(job(), again))[0].label == "Takeda Haruki"
    assert sandbox.stats()["requests"] == 2


def _far_away_the_second_time() -> Callable[[str, int], None]:
    asked: list[int] = []

    def take(_: str, calls: int) -> None:
        asked.append(calls)
        if len(asked) == 2:
            raise Snooze(100, "rate_limit")

    return take


def test_a_task_that_is_gone_or_cancelled_ends_cleanly_without_a_call(sandbox: Sandbox) -> None:
    """Nothing is asked, nothing written."""
    done = asyncio.run(entity_match(job()))
    assert done.write is None and sandbox.stats()["requests"] == 0


@pytest.mark.parametrize("body", [{}, {"task_id": "7"}, {"task_id": True}, {"task_id": -1}, {"task_id": 2**70}])
def test_a_job_without_a_task_fails_with_advice(body: dict[str, object]) -> None:
    """The message says how to queue one."""
    with pytest.raises(Permanent, match="UPDATE tasks"):
        asyncio.run(entity_match(Job(body=body)))


def test_lists_are_merged_in_turn() -> None:
    """The best of every language come first, nobody twice."""
    assert merged([["Q1", "Q2", "Q3"], ["Q2", "Q9"], []], 4) == ["Q1", "Q2", "Q9", "Q3"]
