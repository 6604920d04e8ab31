"""Records as catalogues really have them, each with the entity it means, or none: to measure a matcher by."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.wikidata_hard import HARD
from sandbox.wikidata_spoilt import WAYS
from sandbox.wikidata_world import HUMAN, world

STRANGERS = (
    "Leopold Windischgruber",
    "Agatha Crumbleigh",
    "Rodrigo Valdespino",
    "Ingeborg Tavastson",
    "Amadou Keitala",
    "Priya Venkatraghavan",
    "Oluwaseun Adebimpe",
    "Hamish Drumgoole",
    "Violeta Stoyanovska",
    "Matthijs Korenvaar",
    "Zsófia Hargitay",
    "Einar Skúlason-Vik",
    "Fatima Benchekroun",
    "Dmitri Polukarov",
    "Anatole Quernec",
    "Barnabas Tuddenham",
    "Cosima Rautenstrauch",
    "Eudora Lillywhite",
    "Gaspard Montferrier",
    "Hedwig Sturmfels",
)


@dataclass(frozen=True)
class Labelled:
    """A record, what makes it difficult, and the right answer (None: no entity)."""

    name: str
    data: dict[str, str]
    answer: str | None
    kind: str


def labelled() -> list[Labelled]:
    """The whole set, the same every time."""
    dice = random.Random(5)  # noqa: S311  a fixed order, not a secret
    return [*_hard(), *_spoiled(dice), *_homonyms(), *_things(), *_strangers()]


def _hard() -> Iterator[Labelled]:
    """Written by hand; the entity is found by its English name and what begins its birth or description."""
    for name, data, means in HARD:
        found = [k for k in world() if means and k.name == means[0] and means[1] in f"{k.born} {k.description}"]
        assert means is None or len(found) == 1, (name, means, found)
        yield Labelled(name, data, found[0].qid if found else None, "by hand")


def _spoiled(dice: random.Random) -> Iterator[Labelled]:
    """People without namesakes, their names spoilt in ten ways, most with a date."""
    times = Counter(known.name for known in world())
    people = [k for k in world() if k.kind == HUMAN and times[k.name] == 1 and k.born]
    dice.shuffle(people)
    for place, person in enumerate(people[:150]):
        kind, spoil = WAYS[place % len(WAYS)]
        born = {"born": person.born if place % 3 else person.born[:4]}
        # Two in seven have nothing but their name.
        yield Labelled(spoil(dice, person), {"type": "human"} | (born if place % 7 > 1 else {}), person.qid, kind)


def _homonyms() -> Iterator[Labelled]:
    times = Counter(known.name for known in world())
    people = [k for k in world() if k.kind == HUMAN and times[k.name] > 1 and k.born]
    for place, person in enumerate(people[::2][:36]):
        known = {"born": person.born[:4]} if place % 6 else {"description": person.description}
        yield Labelled(person.name, known, person.qid, "homonym")
    for person in people[1::7][:8]:
        # Of another year than all who bear the name: nobody that Wikidata knows.
        yield Labelled(person.name, {"born": "1699"}, None, "namesake unknown")
    for person in people[3::9][:6]:
        yield Labelled(person.name, {}, person.qid, "homonym, nothing else known")


def _things() -> Iterator[Labelled]:
    things = [known for known in world() if known.kind != HUMAN and known.founded]
    words = {"Q3957": "town", "Q3918": "university", "Q4830453": "company", "Q11446": "ship"}
    for thing in things[::2]:
        yield Labelled(thing.name, {"type": words[thing.kind], "founded": thing.founded}, thing.qid, "thing")


def _strangers() -> Iterator[Labelled]:
    for place, name in enumerate(STRANGERS):
        yield Labelled(name, {"born": str(1800 + place * 7)} if place % 2 else {}, None, "stranger")
