"""docs/howto/sizing.md: what it says to measure with can be run, and its sums are right."""

from __future__ import annotations

import re

from tests.place import ROOT, Place

PAGE = (ROOT / "docs/howto/sizing.md").read_text()


def test_the_largest_tables_are_listed_by_the_pages_query(place: Place) -> None:
    [query] = re.findall(r'-c "(SELECT .*?)"', PAGE, re.DOTALL)
    assert len(place.rows(query)) == 5


def test_a_process_has_as_many_connections_as_the_other_pages_say() -> None:
    """Four and ten; the checklist adds them up."""
    assert "| PostgreSQL | 4, and up to 10" in PAGE and "≥ 14 × worker processes" in PAGE
    assert "up to 14 for each worker process" in (ROOT / "docs/howto/production-checklist.md").read_text()
