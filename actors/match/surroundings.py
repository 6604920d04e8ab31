"""Classes and places: what a candidate's type is a subclass of, what it lies in, which country that is.

A class or a place hardly ever changes and serves many records: it is asked for once a day by each worker process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from actors.match.candidates import NOBODY, Item
from actors.match.wikidata import MOST_IDS, Wikidata

DAY = 86_400.0
# A few dozen bytes each; Wikidata has about three million classes and far fewer that things are an instance of.
MOST_KEPT = 20_000
# Steps upwards, and calls for one record. What is further away counts as not known.
MOST_STEPS = 6
# Classes that a record can name and none of which is above another: nobody needs to look further up.
_TOPS = ("Q5", "Q486972", "Q4830453", "Q783794", "Q38723", "Q11424", "Q33506", "Q355304", "Q11446")
TOPS = frozenset({*_TOPS, "Q4167410", "Q4167836"})
MOST_CALLS = 6


@dataclass
class Known:
    """What this process has been told lately. Coroutines of one loop share it; asking twice does no harm."""

    items: dict[str, tuple[float, Item]] = field(default_factory=dict)

    def get(self, qid: str) -> Item | None:
        """The item, unless it was never asked for or too long ago."""
        if qid in TOPS:
            return Item()
        until, item = self.items.get(qid, (0.0, None))
        return item if until > monotonic() else None

    def add(self, found: Mapping[str, Item]) -> None:
        """The oldest make room."""
        for qid, item in found.items():
            self.items.pop(qid, None)
            self.items[qid] = (monotonic() + DAY, item)
        while len(self.items) > MOST_KEPT:
            self.items.pop(next(iter(self.items)))


_known: defaultdict[str, Known] = defaultdict(Known)


def known_of(address: str) -> Known:
    """What the API at this address has told this process; the one that there is, outside of tests."""
    return _known[address]


class Surroundings:
    """The classes and places around the candidates of one record."""

    def __init__(self, known: Known | None = None) -> None:
        self._known = known or Known()
        self._calls = 0

    async def look_up(self, wikidata: Wikidata, ids: Iterable[str], steps: int = MOST_STEPS) -> None:
        """Bring what is not known of these, and of what is above them."""
        front = frozenset(ids)
        for _ in range(steps):
            missing = sorted(qid for qid in front if self._known.get(qid) is None)
            while missing and self._calls < MOST_CALLS:
                some, missing = missing[:MOST_IDS], missing[MOST_IDS:]
                self._calls += 1
                self._known.add(await wikidata.items(some, ()))
            above = frozenset().union(*(item.above for qid in front if (item := self._known.get(qid))))
            front = above - front
            if not front:
                return

    def item(self, qid: str) -> Item:
        """An empty one for what is not known."""
        return self._known.get(qid) or Item()

    def above(self, ids: Iterable[str]) -> frozenset[str]:
        """These and all above them, as far as known."""
        seen: frozenset[str] = frozenset()
        front = frozenset(ids)
        for _ in range(MOST_STEPS):
            seen |= front
            front = frozenset().union(*(self.item(qid).above for qid in front)) - seen
        return seen

    def complete(self, ids: Iterable[str]) -> bool:
        """Whether all that is above them is known."""
        return all(self._known.get(qid) is not None for qid in self.above(ids))

    def is_nobody(self, types: frozenset[str]) -> bool:
        """A page that Wikimedia keeps for itself, such as a disambiguation page or a category."""
        return bool(types) and bool(self.above(types) & NOBODY)
