"""What a record's searches have brought so far, kept while its job waits between two calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.match.candidates import is_number
from actors.match.queries import Query


@dataclass
class Memory:
    """The entities' numbers by question, and the questions that were not answered to the end.

    ``has_news``: an answer came that was not judged yet. ``has_bearers``: some entity has the name as it is written.
    So an attempt that continues asks on where the last one stopped, and gets the entities of all answers with one call.
    """

    asked: dict[str, list[str]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    has_news: bool = False
    has_bearers: bool = False

    @classmethod
    def read(cls, kept: object) -> Memory:
        """What ``shown`` made. Anything else, such as what an older version kept, is nothing: it is asked again."""
        match kept:
            case {"asked": dict(asked), "open": list(still_open), "news": bool(news), "bearers": bool(bearers)}:
                known = {str(key): [qid for qid in ids if is_number(qid)] for key, ids in asked.items()}
                return cls(known, {str(key) for key in still_open}, news, bearers)
        return cls()

    def shown(self) -> Mapping[str, Any]:
        """As JSON."""
        return {
            "asked": self.asked,
            "open": sorted(self.open),
            "news": self.has_news,
            "bearers": self.has_bearers,
        }

    def has(self, query: Query) -> bool:
        """Whether it was asked already."""
        return query.key in self.asked

    def ids(self) -> list[str]:
        """What all questions brought, in their order."""
        return [qid for ids in self.asked.values() for qid in ids]

    def add(self, query: Query, ids: list[str], more: bool) -> None:
        """Keep an answer. The last page of a question closes it."""
        self.asked[query.key] = ids
        self.has_news = True
        if query.page:
            self.open.discard(query.page_before().key)
        if more:
            self.open.add(query.key)

    def unanswered(self) -> list[Query]:
        """The last pages of questions that have more."""
        return [Query.read(key) for key in sorted(self.open)]

    def unseen(self) -> str:
        """In words, which namesakes were not looked at; empty if there are none."""
        return f"there are more of that name than the {len(set(self.ids()))} looked at" if self.open else ""
