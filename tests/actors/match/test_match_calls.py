"""Each call for a record has its permit, and an attempt that continues repeats little."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from actors.match.config import MatchSettings
from actors.match.decide import ProjectSettings
from actors.match.entity_match import entity_match, judge
from actors.match.memory import Memory
from actors.match.records import Record, read_record
from actors.match.store import Task
from pipeline.declare.errors import Snooze
from pipeline.testing import FakeServices
from sandbox import Sandbox
from sandbox.wikidata_labelled import labelled
from tests.actors.match.jobs import job


def test_the_phase_takes_a_permit_for_each_call_and_keeps_the_ranked_list(
    sandbox: Sandbox, settings: MatchSettings
) -> None:
    """Two at once for the search and its entities; small result, list with reasons in the write."""
    permits: list[tuple[str, int]] = []
    row: dict[str, Any] = {
        "name": "Haruki Takeda",
        "data": {"type": "human"},
        "found": None,
        "settings": {"languages": ["en", "ja"]},
    }
    done = asyncio.run(entity_match(job(permits=permits, **row)))
    assert sum(calls for _, calls in permits) == sandbox.stats()["requests"] == 2
    assert {rate_limit for rate_limit, _ in permits} == {"wikidata"}
    assert done.result is not None and done.result["decision"] == "matched" and done.write is not None


def test_every_call_of_a_hard_record_has_a_permit(sandbox: Sandbox, settings: MatchSettings) -> None:
    """A name that nobody has is looked for in three ways."""
    permits: list[tuple[str, int]] = []
    row: dict[str, Any] = {"name": "Agatha Crumbleigh", "data": {"type": "human"}, "found": None, "settings": {}}
    done = asyncio.run(entity_match(job(permits=permits, **row)))
    assert done.result is not None and done.result["decision"] == "none" and done.result["why"]
    assert 3 <= sandbox.stats()["requests"] <= sum(calls for _, calls in permits) <= 5


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
        asyncio.run(judge(first, task))
    [values] = kept
    assert json.loads(values["found"])["asked"] and sandbox.stats()["requests"] == 1
    again = replace(task, memory=Memory.read(json.loads(values["found"])))
    assert asyncio.run(judge(job(), again))[0][0].candidate.label == "Takeda Haruki"
    assert sandbox.stats()["requests"] == 2


@pytest.mark.parametrize("place", range(0, 280, 20))
def test_a_record_that_waits_after_every_second_call_comes_to_the_same_end(
    sandbox: Sandbox, settings: MatchSettings, place: int
) -> None:
    """As under load, where each further permit is far away. An attempt that continues repeats at most one call."""
    one = labelled()[place]
    task = Task(7, read_record(one.name, one.data), ProjectSettings())
    asyncio.run(judge(job(), task))  # classes are known from here on
    before = sandbox.stats()["requests"]
    _, at_once = asyncio.run(judge(job(), replace(task, memory=Memory())))
    calls = sandbox.stats()["requests"] - before
    kept: list[Mapping[str, Any]] = []
    waiting, decision = replace(task, memory=Memory()), None
    while decision is None:
        hurried = job(kept)
        hurried.services = FakeServices(keep=hurried.services.keep, take_permit=_only_once())
        try:
            _, decision = asyncio.run(judge(hurried, waiting))
        except Snooze:
            waiting = replace(task, memory=Memory.read(json.loads(kept[-1]["found"])))
    assert decision == at_once
    assert sandbox.stats()["requests"] - before - calls <= calls + len(kept)


def _only_once() -> Callable[[str, int], None]:
    asked: list[int] = []

    def take(_: str, calls: int) -> None:
        asked.append(calls)
        if len(asked) > 1:
            raise Snooze(100, "rate_limit")

    return take


def _far_away_the_second_time() -> Callable[[str, int], None]:
    asked: list[int] = []

    def take(_: str, calls: int) -> None:
        asked.append(calls)
        if len(asked) == 2:
            raise Snooze(100, "rate_limit")

    return take
