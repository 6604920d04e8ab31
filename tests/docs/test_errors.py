"""docs/reference/errors.md quotes messages that the code has."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from tests.place import ROOT

PAGE = (ROOT / "docs/reference/errors.md").read_text()
QUOTED = [quote for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for quote in re.findall(r"`([^`]+)`", row)]


@lru_cache(maxsize=1)
def said() -> str:
    """All of the engine's code, with texts that go over several lines put together."""
    files = [path for path in (ROOT / "pipeline").rglob("*") if path.suffix in (".py", ".sql")]
    return re.sub(r"""["']\s*\n?\s*f?["']""", "", "\n".join(path.read_text() for path in sorted(files)))


@pytest.mark.parametrize("quote", QUOTED)
def test_a_quoted_message_is_one_of_the_engines(quote: str) -> None:
    """Every part of it; what differs is left out."""
    parts = [part.strip(" :,") for part in quote.split("…")]
    assert all(part in said() for part in parts), quote
    assert max(map(len, parts)) >= 5


def test_the_page_has_more_than_a_few() -> None:
    assert len(QUOTED) > 60
