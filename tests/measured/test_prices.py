"""How well prices are read, on both halves of the labelled set; ``-s`` prints the figures."""

from __future__ import annotations

import pytest

from tests.measured.prices_figures import measure
from tests.measured.test_sets import HALVES


@pytest.mark.parametrize("half", HALVES)
def test_no_price_is_read_wrong_and_few_stay_unread(half: str) -> None:
    """At most one in twenty is kept aside, each with its reason."""
    figures = measure(half)
    print("\n".join(["", *figures.lines()]))
    assert not figures.wrong
    assert len(figures.unread) <= 0.05 * figures.total
    assert len(figures.currencies) > 15
