"""The client against the sandbox's API: real shapes, and how each kind of trouble ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import httpx
import pytest

from actors.match.config import STRANGER, WIKIDATA, MatchSettings
from actors.match.decide import ProjectSettings
from actors.match.entity_match import entity_match, judge
from actors.match.memory import Memory
from actors.match.queries import Query
from actors.match.records import Record, read_record
from actors.match.store import Task
from actors.match.wikidata import Hits, SlowDown, Wikidata
from pipeline.declare.errors import GiveUp, Permanent, Retry, Snooze, Transient, classify
from pipeline.declare.job import Job
from pipeline.http.client import Fetched, TooLarge, fetch
from sandbox import Sandbox
from tests.actors.match.jobs import job

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_search_and_entities_speak_wikidatas_shapes(settings: MatchSettings) -> None:
    """A label in any language, aliases, dates, types; what is gone is left out; no typing error is forgiven."""
    wikidata = Wikidata(settings)
    [first] = search(wikidata, "武田春").found
    [again] = search(wikidata, "TAKEDA haru").found
    assert (first.text, again.text, again.qid) == ("武田春樹", "Takeda Haruki", first.qid)
    [found] = asyncio.run(wikidata.entities([first.qid, "Q1"], ("en", "ja")))
    assert (found.label, found.types) == ("Takeda Haruki", frozenset({"Q5"}))
    assert {term.text for term in found.terms} >= {"武田春樹", "Haruki Takeda"}
    assert found.dates["P569"][0].year > 1700
    assert search(wikidata, "Takeda Harukki") == search(wikidata, "Nobody Ever Known") == Hits()
    [same] = search(wikidata, "harukki~ takeda haswbstatement:P31=Q5", "words").found
    assert same.qid == first.qid


def search(wikidata: Wikidata, text: str, how: Literal["begins", "words"] = "begins", page: int = 0) -> Hits:
    return asyncio.run(wikidata.search(Query(how, text, page), "en"))


def test_a_merged_entity_is_kept_under_its_new_number(settings: MatchSettings) -> None:
    """And says as what it was found; a record is matched with it once."""
    [found] = asyncio.run(Wikidata(settings).entities(["Q990201"], ("en",)))
    assert (found.qid, found.asked_as, found.label) == ("Q900001", "Q990201", "Sergei Chernyshov")
    ranked, decision = asyncio.run(judge(job(), Task(7, read_record(found.label, {"born": "1780"}), ProjectSettings())))
    assert decision.qid == "Q900001" and [one.candidate.qid for one in ranked].count("Q900001") == 1


def test_a_page_that_is_nobody_is_never_a_match(settings: MatchSettings) -> None:
    """“Ashcombe” is a town, a family name, a disambiguation page and a category: the type decides, or a person."""
    ranked, decision = asyncio.run(judge(job(), Task(7, read_record("Ashcombe", {"type": "town"}), ProjectSettings())))
    assert decision.verdict == "matched" and "Q3957" in ranked[0].candidate.types
    _, decision = asyncio.run(judge(job(), Task(7, read_record("Ashcombe", {}), ProjectSettings())))
    assert decision.verdict == "ambiguous" and "apart" in decision.why


def test_classes_are_asked_for_once(sandbox: Sandbox, settings: MatchSettings) -> None:
    """The second record of that kind costs a search and its entities."""
    calls = []
    for _ in range(2):
        sandbox.reset()
        task = Task(7, read_record("University of Ashcombe", {"type": "university"}), ProjectSettings())
        assert asyncio.run(judge(job(), task))[1].verdict == "matched"
        calls.append(sandbox.stats()["requests"])
    assert calls[0] > calls[1] == 2


def test_an_answer_that_is_too_large_is_asked_for_in_halves(
    settings: MatchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each half with a permit of its own."""
    from actors.match import wikidata as module

    asked: list[int] = []

    async def fetched(url: str, **rest: object) -> object:
        asked.append(url.count("%7C") + 1)
        if asked[-1] > 4:  # props hold three of these signs
            raise TooLarge("too large")
        return await fetch(url, **rest)  # type: ignore[arg-type]  # what the client gave

    permits: list[None] = []

    async def permit() -> None:
        permits.append(None)

    monkeypatch.setattr(module, "fetch", fetched)
    found = asyncio.run(Wikidata(settings, permit=permit).entities(["Q900001", "Q900002"], ("en",)))
    assert [one.qid for one in found] == ["Q900001", "Q900002"]
    assert len(permits) == len(asked) == 3


def test_an_entity_that_cannot_be_read_is_not_left_out(
    settings: MatchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record would be decided as if nobody of that number existed."""
    from actors.match import wikidata as module

    async def fetched(*_: object, **__: object) -> object:
        raise TooLarge("too large")

    monkeypatch.setattr(module, "fetch", fetched)
    with pytest.raises(TooLarge):
        asyncio.run(Wikidata(settings).entities(["Q900001", "Q900002"], ("en",)))


def test_a_list_without_entities_is_no_answer(settings: MatchSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody found, and something else than found, are told apart."""
    from actors.match import wikidata as module

    for body, verdict in ((b'{"search": []}', None), (b'{"search": [1, null, {"id": "P31"}]}', Transient)):

        async def fetched(url: str, body: bytes = body, **_: object) -> Fetched:
            return Fetched(url, url, 200, httpx.Headers(), body, len(body))

        monkeypatch.setattr(module, "fetch", fetched)
        if verdict is None:
            assert search(Wikidata(settings), "x") == Hits()
        else:
            with pytest.raises(verdict, match="without entities"):
                search(Wikidata(settings), "x")


def test_we_say_who_asks_and_how_to_reach_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wikimedia's policy: a name, a version, a contact. Until there is one, it says how to set it."""
    monkeypatch.delenv("WIKIDATA_CONTACT", raising=False)
    assert "durable-pipeline/" in MatchSettings().agent and "WIKIDATA_CONTACT" in MatchSettings().agent
    monkeypatch.setenv("WIKIDATA_CONTACT", "https://example.org/bot; ops@example.org")
    said = MatchSettings().headers["User-Agent"]
    assert said.startswith("durable-pipeline/") and "(https://example.org/bot; ops@example.org)" in said
    monkeypatch.setenv("WIKIDATA_CONTACT", "two\nlines")
    with pytest.raises(ValueError, match="contact"):
        MatchSettings()


def test_what_an_older_version_kept_is_asked_again() -> None:
    """Or what cannot be read."""
    older: list[object] = [None, {"en": ["Q1"]}, [], "x", {"asked": [], "open": {}}]
    for kept in older:
        assert Memory.read(kept) == Memory()
    memory = Memory()
    memory.add(Query("begins", "Jane 1 Doe"), ["Q1", "Q2"], more=True)
    assert Memory.read(json.loads(json.dumps(memory.shown()))) == memory and "more" in memory.unseen()
    [last] = memory.unanswered()
    memory.add(last.next_page(), ["Q3"], more=False)
    assert memory.unseen() == "" and memory.ids() == ["Q1", "Q2", "Q3"]


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
        search(Wikidata(settings), "Jane")
    assert classify(caught.value, NOW) == verdict


def test_a_refused_question_fails_with_wikidatas_own_words(settings: MatchSettings) -> None:
    """Errors come with status 200; the client reads them all the same."""
    with pytest.raises(Permanent, match="badvalue"):
        asyncio.run(Wikidata(settings).search(Query("begins", "Jane"), "no language"))
    with pytest.raises(Permanent, match="cirrussearch-query-too-long"):
        search(Wikidata(settings), "Jane " * 100, "words")
    with pytest.raises(Permanent, match="toomanyvalues"):
        asyncio.run(Wikidata(settings).entities([f"Q{n}" for n in range(51)], ("en",)))
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
    *,
    header: str,
    least: float,
    most: float,
) -> None:
    """Seconds or a date; without either, a pause of the setting's length. It is no progress of the job. The engine pauses the
    phase's limit for that Snooze."""
    sandbox.add_fault(match="/w/", status=429, retry_after=header)
    kept: list[Mapping[str, Any]] = []
    with pytest.raises(Snooze) as caught:
        asyncio.run(judge(job(kept), Task(7, Record("Jane"), ProjectSettings())))
    assert least <= caught.value.seconds <= most and caught.value.reason == "retry_after" and caught.value.asked
    assert kept == []


def test_a_busy_server_that_says_so_in_json_is_obeyed(sandbox: Sandbox, settings: MatchSettings) -> None:
    """``maxlag`` comes with status 200 and a Retry-After."""
    httpx.put(f"{sandbox.url}/w/_lag", json={"seconds": 7, "times": 1})
    with pytest.raises(SlowDown, match="maxlag") as caught:
        search(Wikidata(settings), "Jane")
    assert caught.value.seconds == 5


def test_a_task_that_is_gone_or_cancelled_ends_cleanly_without_a_call(sandbox: Sandbox) -> None:
    """Nothing is asked, nothing written."""
    done = asyncio.run(entity_match(job()))
    assert done.write is None and sandbox.stats()["requests"] == 0


@pytest.mark.parametrize("body", [{}, {"task_id": "7"}, {"task_id": True}, {"task_id": -1}, {"task_id": 2**70}])
def test_a_job_without_a_task_fails_with_advice(body: dict[str, object]) -> None:
    """The message says how to queue one."""
    with pytest.raises(Permanent, match="UPDATE tasks"):
        asyncio.run(entity_match(Job(body=body)))
