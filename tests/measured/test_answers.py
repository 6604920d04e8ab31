"""What models send back is read, or refused, as the labelled set says; figures are printed for each half."""

from __future__ import annotations

import pytest

from tests.measured.answers_figures import measure
from tests.measured.test_sets import HALVES


@pytest.mark.parametrize("half", HALVES)
def test_answers_are_read_or_repaired_within_two_calls(half: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All that can be read for certain is read as expected, nothing else is; a second question settles the rest."""
    figures = measure(half)
    with capsys.disabled():
        print("", *figures.lines(), sep="\n")
    assert not figures.differ
    assert max(figures.calls.values()) <= 2 and len(figures.calls) == figures.total
