"""Reading marketplaces: both shipped adapters against the sandbox, and hostile answers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.scrape.adapters import ADAPTERS, Adapter, Unparsable, adapter_for
from actors.scrape.config import ScrapeSettings
from actors.scrape.html_listing import Fields, read_listings
from actors.scrape.listing import Intake, Listing, dated
from actors.scrape.match import match_strength
from actors.scrape.money import REFERENCE_RATES
from actors.scrape.normalise import Market, price_points, sort_out, undated
from actors.scrape.price_collection import read
from pipeline.declare.errors import Permanent
from pipeline.http.client import Fetched, fetch
from sandbox import Sandbox

CENT = Intake("i", "VDB cent", 1909, "S", "cent", "Lincoln")
SEEN = datetime(2026, 7, 1, tzinfo=UTC)


def answer(body: bytes, content_type: str = "text/html") -> Fetched:
    headers = httpx.Headers({"content-type": content_type})
    return Fetched("http://m.example/", "http://m.example/", 200, headers, body, len(body))


def asked(name: str, sandbox: Sandbox) -> list[Listing]:
    adapter = adapter_for(name)
    url = adapter.address(f"{sandbox.url}/market/heritage/", CENT, {})
    policy = ScrapeSettings(sandbox_url=sandbox.url).address_policy
    return adapter.read(asyncio.run(fetch(url, policy=policy)), 500)


def test_a_page_and_an_api_of_one_market_say_the_same(sandbox: Sandbox) -> None:
    """Written prices, dates and types come to the same points; the offer that came twice is one."""
    page, api = (price_points(asked(name, sandbox), CENT, REFERENCE_RATES, SEEN) for name in ADAPTERS)
    assert page == api and len(page) == 12
    assert {point.price_type for point in page} == {"sold", "ask", "bid"}
    assert len({point.currency for point in page}) == 2 and all(point.price_cents > 100 for point in page)
    assert {point.dedupe_key.split("_")[0] for point in page} == {"ext", "hash"}
    assert sum(point.match_strength < 0.5 for point in page) == 1


def test_a_new_source_is_one_small_class() -> None:
    """Named, registered and used."""

    class Auctions(ADAPTERS["items-api"].__class__):  # type: ignore[misc]
        name = "auctions-test"
        path = "/lots"
        items = "lots"

        def offer(self, item: dict[str, str]) -> Listing:
            return Listing(title=item["lot"], url=item["link"], price=item["hammer"], type="sold")

    try:
        [found] = adapter_for("auctions-test").read(answer(b'{"lots": [{"lot": "A", "link": "/1", "hammer": "5"}]}'), 9)
        assert found == Listing(title="A", url="http://m.example/1", price="5", type="sold")
    finally:
        del ADAPTERS["auctions-test"]
    with pytest.raises(Permanent, match="must be one of items-api, listing-page"):
        adapter_for("auctions-test")


@pytest.mark.parametrize(
    "body", [b"", b"<html><p>Please log in", b"\x00\xff\xfe", b"{", b"[]", b'{"items": 3}', b"nul"]
)
@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_an_answer_that_is_no_list_of_offers_is_unparsable(adapter: Adapter, body: bytes) -> None:
    """Which counts as a failure of the source; an empty list would hide it."""
    with pytest.raises(Unparsable):
        adapter.read(answer(body), 9)


def test_an_empty_list_of_offers_is_a_fine_answer() -> None:
    """Nobody sells this coin."""
    assert adapter_for("listing-page").read(answer(b'<ul class="listings"></ul>'), 9) == []
    assert adapter_for("items-api").read(answer(b'{"items": []}'), 9) == []


@pytest.mark.parametrize(
    "html",
    [
        '<ul class="listings">' + '<li class="listing"><b class="title">x' * 20_000,
        '<ul class="listings">' + "<div>" * 50_000,
        '<ul class="listings"><li class="listing" ' + " ".join(f"a{n}=1" for n in range(100_000)) + ">",
        "<ul class=listings><li class='listing'>" + "<span class='title price'>" * 5000,
    ],
    ids=["offers", "depth", "attributes", "parts"],
)
def test_a_hostile_page_ends_in_time_and_within_bounds(html: str) -> None:
    """Time is bounded by the reader itself; the test's own limit is far above."""
    assert len(read_listings(html, Fields(), 100).offers) <= 100


@given(st.text(max_size=300))
def test_any_text_is_a_page(html: str) -> None:
    """Nothing a page says makes the reader raise."""
    read_listings(html, Fields(), 5)


def test_unusable_offers_are_left_out() -> None:
    """Without price, title, type or address an offer says nothing."""
    good = Listing(title="1909 cent", url="https://m.example/1", price="US $5", type="sold")
    bad = [Listing(**{**good.as_json(), **{field: ""}}) for field in ("title", "url", "price", "type")]
    bad.append(Listing(**{**good.as_json(), "url": "javascript:alert(1)"}))
    points, aside = sort_out([good, *bad], CENT, Market(REFERENCE_RATES), SEEN)
    assert len(points) == 1
    assert [one.reason for one in aside] == ["no title", "no address", "no amount", "no type", "no address"]


def test_offers_that_have_all_lost_their_shape_are_no_answer() -> None:
    """A market that names its fields otherwise from today on would look like one that sells nothing."""
    body = (
        b'{"items": [{"name": "1909 cent", "href": "/1", "price": 5}, {"name": "1910 cent", "href": "/2", "price": 6}]}'
    )
    with pytest.raises(Unparsable, match="none of the 2 offers"):
        read(adapter_for("items-api"), answer(body), ScrapeSettings())


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-11-03", "2024-11-03"),
        ("2024-11-03T23:30:00-05:00", "2024-11-04"),
        ("Nov 3, 2024", "2024-11-03"),
        ("3rd November 2024", "2024-11-03"),
        ("2024/11/03", "2024-11-03"),
        ("Sun, 03 Nov 2024 10:00:00 GMT", "2024-11-03"),
    ],
)
def test_the_day_of_an_offer_is_read(text: str, day: str) -> None:
    """As markets write it, in UTC."""
    found = dated(text, SEEN)
    assert found is not None and found.date().isoformat() == day


@pytest.mark.parametrize("text", ["03/11/2024", "yesterday", "2099-01-01", "0001-01-01T00:00:00+14:00", "9" * 50])
def test_a_day_that_nobody_knows_is_counted_and_is_today(text: str) -> None:
    """The job's result says how many."""
    listing = Listing(title="1909 cent", url="https://m.example/1", price="US $5", type="sold", date=text)
    [point] = price_points([listing], CENT, REFERENCE_RATES, SEEN)
    assert point.observed_at == SEEN and undated([listing], SEEN) == 1


@pytest.mark.parametrize(
    ("title", "strength"),
    [("1909-S VDB Lincoln Cent", 1.0), ("LINCOLN  cent 1909s vdb", 1.0), ("Roosevelt dime 1965", 0.0), ("", 0.0)],
)
def test_strength_is_the_share_of_the_coin_that_the_title_names(title: str, strength: float) -> None:
    """Everything, in whatever order and case, or nothing."""
    assert match_strength(CENT, title) == strength


def test_a_part_that_is_wrong_makes_it_weaker() -> None:
    """The year weighs most."""
    strengths = [
        match_strength(CENT, title)
        for title in ("1909-S VDB Lincoln cent", "1909 VDB Lincoln cent", "1910-S VDB Lincoln cent")
    ]
    assert strengths == sorted(strengths, reverse=True) and len(set(strengths)) == 3
