"""Prices as people write them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.scrape.money import REFERENCE_RATES, NoPrice, Price, in_reference_cents, price, read_price


@pytest.mark.parametrize(
    ("text", "cents", "currency"),
    [
        ("$1,234.50", 123_450, "USD"),
        ("1.234,50 €", 123_450, "EUR"),
        ("US $ 12", 1200, "USD"),
        ("C$ 9.5", 950, "CAD"),
        ("£1,234", 123_400, "GBP"),
        ("CHF 1'234.05", 123_405, "CHF"),
        ("1 234,5 EUR", 123_450, "EUR"),
        ("¥12,000", 12_000, "JPY"),
        ("Price: 7.25.", 725, "USD"),
    ],
)
def test_a_price_is_read_as_its_writer_meant_it(text: str, cents: int, currency: str) -> None:
    """Grouping, decimal signs and currencies of several countries."""
    assert read_price(text) == Price(cents, currency)


@pytest.mark.parametrize("text", ["", "free", "0.00", "$0", "0.001", "9" * 60, "-"])
def test_no_price_is_no_price(text: str) -> None:
    """Nothing is made up, and nothing overflows a column."""
    with pytest.raises(NoPrice):
        in_reference_cents(read_price(text), REFERENCE_RATES)


def test_a_currency_without_a_rate_is_refused_by_name() -> None:
    """With the setting that would help."""
    with pytest.raises(NoPrice, match="XAU: add it to SCRAPE_RATES"):
        in_reference_cents(read_price("XAU 2"), REFERENCE_RATES)


@given(st.integers(1, 10**9), st.sampled_from(sorted(REFERENCE_RATES)))
def test_a_written_price_comes_back(cents: int, currency: str) -> None:
    """For every currency, in the American and the German way."""
    amount = Decimal(cents) if currency == "JPY" else Decimal(cents) / 100
    written = f"{amount:,.2f}" if currency != "JPY" else f"{amount:,}"
    for text in (written, written.translate(str.maketrans(",.", ".,"))):
        assert read_price(f"{text} {currency}") == price(amount, currency) == Price(cents, currency)


@given(st.text(max_size=200))
def test_any_text_is_a_price_or_none(text: str) -> None:
    """Hostile text raises nothing else."""
    try:
        assert read_price(text).cents >= 1
    except NoPrice:
        pass
