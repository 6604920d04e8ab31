"""How well a listing's title fits the coin, from 0 (another thing) to 1 (everything named). Pure."""

from __future__ import annotations

import re

from actors.scrape.dedupe import normal_title
from actors.scrape.listing import Intake

# What a collector looks at first weighs most; parts that the intake leaves open do not count.
WEIGHTS = {"year": 3.0, "mintmark": 1.5, "denomination": 2.0, "series": 2.0, "title": 1.5}
_WORDS = re.compile(r"\w+")


def match_strength(intake: Intake, title: str) -> float:
    """The share of the intake's parts, by weight, that the title names; four decimals."""
    words = _words(title)
    asked = {part: _words(str(getattr(intake, part) or "")) for part in WEIGHTS}
    weights = {part: weight for part, weight in WEIGHTS.items() if asked[part]}
    if not weights:
        return 0.0
    found = sum(weight * _share(asked[part], words, part) for part, weight in weights.items())
    return round(found / sum(weights.values()), 4)


def _share(asked: set[str], words: set[str], part: str) -> float:
    if part == "mintmark" and any(word[:-1].isdigit() and word[-1:] in asked for word in words):
        return 1.0  # written together with the year: 1909s
    if part == "year":
        return float(any(word == year or word[:-1] == year for year in asked for word in words))
    return len(asked & words) / len(asked)


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(normal_title(text)))
