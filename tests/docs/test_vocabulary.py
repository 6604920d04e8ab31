"""One name for one thing: words that were given up do not come back, in docs, code, commands or pages.

The words in use are in docs/glossary.md. Decisions and the changelog say what things were called before, and migrations
keep the names of their time.
"""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.place import ROOT

GIVEN_UP = {
    r"seats?": "leader lock",
    r"ledger": "reconciliation",
    r"lanes?": "rate limit",
    r"caretakers?": "maintenance",
    r"onward": "continuing",
    r"carriers?": "continuing",
    r"park(ed|ing|s)?": "snoozed",
    r"presence": "liveness",
    r"deaf": "not consuming",
    r"vital threads?": "essential thread",
    r"send numbers?": "delivery number",
    r"waiting room": "outbox",
    r"hand(s|ed|ing)? back": "release",
    r"mend(s|ed|ing)?": "repair",
    r"payloads?": "body",
}
# Ordinary uses: what stands before the colon is a file, or a folder.
ORDINARY = {
    "seats?": ("sandbox/: of a university",),
    "ledger": ("chaos/: a table of effects", "docs/reliability.md: the same table"),
    "lanes?": ("docs/million.md: says what they are called today",),
    "onward": ("actors/website/: where a page leads to",),
    "park(ed|ing|s)?": ("actors/website/: domains", "docs/website.md: domains"),
    "presence": ("pipeline/store/migrate.py: sessions of the first generation",),
    "mend(s|ed|ing)?": ("pipeline/journey/ends.py: what time does not mend",),
    "payloads?": (
        "pipeline/broker/outbound.py: AMQP's word",
        "pipeline/journey/ends.py: psycopg's",
        "bench/: a rival's",
    ),
}
READ = (".py", ".sql", ".md", ".js", ".html", ".css", ".yaml", ".json", ".toml")
HISTORY = ("docs/adr/", "CHANGELOG.md", "pipeline/store/migrations/", "db/migrations/", "tests/")


@lru_cache(maxsize=1)
def texts() -> dict[str, str]:
    """What git knows, tests and history apart."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    kept = [name for name in names if name.endswith(READ) and not name.startswith(HISTORY)]
    return {name: path.read_text() for name in kept if (path := ROOT / name).is_file()}


def _pattern(word: str) -> re.Pattern[str]:
    """Two words of a comment may stand on two lines."""
    return re.compile(rf"\b{word}\b".replace(" ", r"\s+(?:(?:--|#|//)\s+)?"), re.IGNORECASE)


@pytest.mark.parametrize("word", GIVEN_UP)
def test_a_word_that_was_given_up_does_not_come_back(word: str) -> None:
    """Otherwise say what the glossary says."""
    pattern = _pattern(word)
    ordinary = tuple(place.partition(":")[0] for place in ORDINARY.get(word, ()))
    found = [
        f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}"
        for name, text in texts().items()
        if not name.startswith(ordinary)
        for hit in pattern.finditer(text)
    ]
    assert not found, f"say {GIVEN_UP[word]!r}: {found}"


@pytest.mark.parametrize(("word", "place"), [(word, place) for word, places in ORDINARY.items() for place in places])
def test_an_exception_is_still_needed(word: str, place: str) -> None:
    where = place.partition(":")[0]
    pattern = _pattern(word)
    assert any(pattern.search(text) for name, text in texts().items() if name.startswith(where)), f"drop {place!r}"


def test_the_folders_are_where_they_are_looked_for() -> None:
    assert len(texts()) > 400 and Path(ROOT / "docs/glossary.md").exists()
