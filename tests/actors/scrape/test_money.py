"""Prices as people write them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.scrape.money import (
    REFERENCE_RATES,
    NoPrice,
    Price,
    in_reference_cents,
    price,
    read_price,
    read_text,
    settled,
)


@pytest.mark.parametrize(
    ("text", "cents", "currency"),
    [
        ("US $1,234.50", 123_450, "USD"),
        ("1.234,50 €", 123_450, "EUR"),
        ("US $ 12", 1200, "USD"),
        ("C$ 9.5", 950, "CAD"),
        ("£1,234", 123_400, "GBP"),
        ("CHF 1'234.05", 123_405, "CHF"),
        ("1 234,5 EUR", 123_450, "EUR"),
        ("12,000円", 12_000, "JPY"),
        ("Price: £7.25.", 725, "GBP"),
        ("£1,050.00 (approx. US $1,300.00)", 105_000, "GBP"),
        ("12.750 BHD", 12_750, "BHD"),
        ("1万2,800円", 12_800, "JPY"),
        ("3만 5천원", 35_000, "KRW"),
        ("Mex$ 1,250.00", 125_000, "MXN"),
    ],
)
def test_a_price_is_read_as_its_writer_meant_it(text: str, cents: int, currency: str) -> None:
    """Grouping, decimal signs and currencies of several countries."""
    assert read_price(text) == Price(cents, currency)


@pytest.mark.parametrize("text", ["$120.00", "120 kr", "¥980", "Rs 650/-", "1,250.00", "Price: 7.25."])
def test_an_unknown_currency_is_unknown(text: str) -> None:
    """Never US dollars by default; a market whose currency it is may be told, another one changes nothing."""
    with pytest.raises(NoPrice) as refused:
        read_price(text)
    assert refused.value.reason == "unknown currency"


@pytest.mark.parametrize(
    ("text", "market", "currency"),
    [
        ("$5", "CAD", "CAD"),
        ("120 kr", "NOK", "NOK"),
        ("¥980", "JPY", "JPY"),
        ("7.25", "USD", "USD"),
        ("€5", "USD", "EUR"),
    ],
)
def test_the_market_decides_what_the_text_leaves_open(text: str, market: str, currency: str) -> None:
    """And nothing that the text says itself."""
    assert read_price(text, market).currency == currency


def test_a_listing_that_contradicts_its_own_text_is_refused() -> None:
    """Either may be wrong; a market that differs is ordinary."""
    assert read_text("£5", market="USD").currency == "GBP"
    with pytest.raises(NoPrice) as refused:
        read_text("£5", row="USD")
    assert refused.value.reason == "contradiction"


def test_a_lot_is_priced_by_the_piece() -> None:
    """Three for 45 dollars are worth 15 each."""
    lot = read_text("Lot of 3: $45.00", "USD")
    assert in_reference_cents(settled(lot), REFERENCE_RATES, lot.quantity) == 1500


@pytest.mark.parametrize(
    "text", ["1 " * 200, "1," * 200, "$" * 400, "(" * 400, "1 000" * 80, "Lot of " * 57, "9" * 10**6]
)
def test_hostile_text_is_read_in_time(text: str) -> None:
    """Bounded in length, and without a pattern that backtracks; the suite's limit is far above."""
    with pytest.raises(NoPrice):
        read_price(text, "USD")


@pytest.mark.parametrize(
    "text",
    [
        "12x de R$ 10,00",
        "R$ 120,00 em 12x de R$ 10,00",
        "$10.00/mo",
        "12,50 €/Monat",
        "£1 10s 6d",
        "$32.50 over spot",
        "$1,000 face value",
        "1万 2,800円",
    ],
)
def test_what_is_not_the_price_of_a_coin_is_not_taken_for_it(text: str) -> None:
    """Instalments, rates for a time, shillings, what is added to the price of the metal, what is struck on the coin."""
    with pytest.raises(NoPrice):
        read_price(text)


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
