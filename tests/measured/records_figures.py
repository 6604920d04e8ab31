"""Measures record matching on the labelled set: ``python -m tests.measured.records_figures [develop|measured]``.

The phase's own searches, scores and decision, over HTTP to a sandbox that holds the set's store; only the database and
the rate limit are left out. Prints precision, recall, the found share of every category, and the calls for a record.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import httpx

from actors.match.config import worker_settings
from actors.match.decide import Decision, ProjectSettings
from actors.match.entity_match import judge
from actors.match.records import read_record
from actors.match.store import Task
from pipeline.declare.job import Job
from sandbox import Sandbox, running_sandbox
from sandbox.wikidata_entity import Entity, Statement
from tests.measured.test_sets import HALVES, HERE, Row, lines, rows

SETTINGS = ProjectSettings()
# What two of them ask for at the same moment is counted twice.
AT_ONCE = 8


@dataclass
class Figures:
    """Of one half. Each record that did not come out as expected is named with what was decided instead."""

    half: str
    total: int = 0
    calls: int = 0
    decided: int = 0
    right: int = 0
    findable: int = 0
    expected: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """The right share of what was decided."""
        return self.right / max(self.decided, 1)

    @property
    def recall(self) -> float:
        """The found share of what has an entity."""
        return self.right / max(self.findable, 1)

    @property
    def calls_a_record(self) -> float:
        """On average, classes and places included."""
        return self.calls / max(self.total, 1)

    @property
    def categories(self) -> dict[str, float]:
        """The share that came out as expected."""
        return {category: self.found[category] / n for category, n in self.expected.items()}

    def add(self, record: Row, decision: Decision) -> None:
        """Count one record. Where no entity is expected, anything but a match is as it should be."""
        expected = record["expected"]
        has_answer = expected not in ("none", "ambiguous")
        good = decision.qid == (expected if has_answer else None)
        self.total += 1
        self.decided += decision.qid is not None
        self.findable += has_answer
        self.right += good and has_answer
        self.expected[record["category"]] += 1
        self.found[record["category"]] += good
        if not good:
            kept = self.missed if decision.qid is None else self.wrong
            kept[record["id"]] = f"{record['name']!r}, {expected}: {decision.verdict}, {decision.why}"

    def lines(self) -> Iterator[str]:
        """As they are printed."""
        yield f"records, {self.half}: {self.total}, {self.decided} decided, {self.right} of them right"
        yield f"  precision {self.precision:.3f}, recall {self.recall:.3f}, {self.calls_a_record:.2f} calls a record"
        for category, n in self.expected.items():
            yield f"  {category:20} {self.found[category]:3} of {n:3}"


def store() -> list[Entity]:
    """Everything the set's Wikidata knows: entities, places, classes, and what was merged."""
    folder = HERE / "records" / "store"
    known = [*lines(folder / "entities.jsonl"), *lines(folder / "places.jsonl")]
    classes = [{**row, "claims": {"P279": row.get("subclass_of", [])}} for row in lines(folder / "types.jsonl")]
    merged = [
        Entity(row["id"], row["stale_labels"], merged_into=row["to"]) for row in lines(folder / "redirects.jsonl")
    ]
    # A few countries are both a place and a class of nothing: the first to say so counts.
    single = {row["id"]: row for row in reversed([*known, *classes])}
    return [*map(_entity, single.values()), *merged]


def _entity(row: Row) -> Entity:
    aliases = {code: tuple(texts) for code, texts in row.get("aliases", {}).items()}
    claims = {prop: tuple(map(_statement, said)) for prop, said in row.get("claims", {}).items()}
    return Entity(row["id"], row["labels"], row.get("descriptions", {}), aliases, claims)


def _statement(said: Any) -> Statement:
    return Statement(str(said["value"]), said["rank"]) if isinstance(said, dict) else Statement(str(said))


@contextmanager
def wikidata() -> Iterator[Sandbox]:
    """The set's Wikidata, asked by this process while the block lasts."""
    with running_sandbox(known=store()) as sandbox, patch.dict(os.environ, {"PIPELINE_SANDBOX_URL": sandbox.url}):
        worker_settings.cache_clear()
        yield sandbox
    worker_settings.cache_clear()


def measure(half: str) -> Figures:
    """Every record of one half, as a worker process would that has been told nothing before."""
    figures = Figures(half)
    with wikidata() as sandbox:
        asyncio.run(_judge_all(rows("records", half), figures))
        figures.calls = len(httpx.get(f"{sandbox.url}/w/_arrivals").json()["arrivals"])
    return figures


async def _judge_all(records: list[Row], figures: Figures) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(record: Row) -> None:
        known: Row = {key: record[key] for key in ("type", "year", "country", "language") if key in record}
        async with places:
            _, decision = await judge(Job(body={}), Task(1, read_record(record["name"], known), SETTINGS))
        figures.add(record, decision)

    await asyncio.gather(*map(one, records))


def main() -> None:
    """Both halves, or the one that was named. Of the measured half no record is shown: nobody tunes on it."""
    for half in sys.argv[1:] or HALVES:
        figures = measure(half)
        print(*figures.lines(), sep="\n")
        if half == "develop":
            print(*(f"  {number}: {said}" for number, said in {**figures.wrong, **figures.missed}.items()), sep="\n")


if __name__ == "__main__":
    main()
