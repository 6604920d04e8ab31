"""Nasty pages are read as a browser shows them; figures are printed for each half."""

from __future__ import annotations

import pytest

from tests.measured.pages_figures import measure
from tests.measured.test_sets import HALVES

MOST_DIFFERENT = 3


@pytest.mark.parametrize("half", HALVES)
def test_pages_are_read_as_a_browser_shows_them(half: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At most three of a half differ; the README explains those."""
    figures = measure(half)
    with capsys.disabled():
        print("", *figures.lines(), sep="\n")
    assert len(figures.differ) <= MOST_DIFFERENT
