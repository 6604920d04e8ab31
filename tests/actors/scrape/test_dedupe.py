"""The dedupe key: stable under what does not matter, different for what does."""

from __future__ import annotations

import hashlib
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from actors.scrape.dedupe import dedupe_key, normal_title, usable_id
from actors.scrape.listing import Intake

DAY = datetime(2026, 3, 5, 12, tzinfo=UTC)
titles = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=80)
queries = st.text(st.characters(exclude_characters="#", exclude_categories=("Cs", "Cc", "Z")), max_size=40)
spaces = st.lists(st.sampled_from([" ", "\t", "\n", "\u00a0", "\u2003"]), min_size=1, max_size=4).map("".join)


def key(
    title: str = "1909-S VDB Cent",
    *,
    url: str = "https://coins.example/item/1",
    cents: int = 12_345,
    at: datetime = DAY,
    kind: str = "sold",
    external_id: str | None = None,
) -> str:
    return dedupe_key(external_id=external_id, url=url, title=title, price_cents=cents, observed_at=at, price_type=kind)


def test_the_sources_own_id_is_the_key() -> None:
    """Directly, as the seed has it."""
    assert key(external_id="v1|1100|0") == "ext_v1|1100|0"


def test_without_an_id_the_key_is_the_seeds_hash() -> None:
    """Sixteen digits of SHA-256 over the five normalised parts, one a line."""
    parts = "https://coins.example/item/1\n1909-s vdb cent\n12345\n2026-03-05\nsold"
    assert key() == "hash_" + hashlib.sha256(parts.encode()).hexdigest()[:16]


@given(queries, queries)
def test_query_parameters_and_fragments_do_not_matter(query: str, fragment: str) -> None:
    """Tracking is not part of an offer."""
    assert key(url=f"https://Coins.EXAMPLE/item/1?{query}#{fragment}") == key()


@given(titles)
def test_case_does_not_matter(title: str) -> None:
    """Also not for letters whose upper case is two letters."""
    assert key(title.upper()) == key(title) == key(title.lower()) == key(title.casefold())


@given(titles)
def test_unicode_forms_do_not_matter(title: str) -> None:
    """Composed, decomposed and compatibility forms look the same to people."""
    assert {key(unicodedata.normalize(form, title)) for form in ("NFC", "NFD", "NFKC", "NFKD")} == {key(title)}


@given(st.lists(st.sampled_from(["1909", "S", "VDB", "cent", "Ⅷ", "ﬁne"]), min_size=1, max_size=6), st.data())
def test_white_space_does_not_matter(words: list[str], data: st.DataObject) -> None:
    """How much, of which kind, and around it."""
    joined = data.draw(spaces).join(words)
    assert key(f"{data.draw(spaces)}{joined}{data.draw(spaces)}") == key(" ".join(words))


@given(titles)
def test_normalising_twice_changes_nothing(title: str) -> None:
    """The normal form is one."""
    assert normal_title(normal_title(title)) == normal_title(title)


@given(st.integers(-12, 14))
def test_the_day_is_the_day_in_utc(hours: int) -> None:
    """The same moment told in another zone is the same listing."""
    late = datetime(2026, 3, 5, 23, 30, tzinfo=UTC)
    assert key(at=late.astimezone(timezone(timedelta(hours=hours)))) == key(at=late)


def test_what_matters_makes_another_key() -> None:
    """Address, title, price, day and type."""
    others = [
        key(url="https://coins.example/item/2"),
        key(title="1909 VDB Cent"),
        key(cents=12_346),
        key(at=DAY + timedelta(days=1)),
        key(kind="ask"),
    ]
    assert len({key(), *others}) == 6


def test_an_id_that_is_none_is_not_used() -> None:
    """Empty, endless or unprintable ids would put different offers under one key, or break the row."""
    assert [usable_id(value) for value in ("", "  ", None, "x" * 201, "a\x00b", {"id": 1})] == [None] * 6
    assert (usable_id(" 12 "), usable_id(12)) == ("12", "12")


def test_the_seeds_cache_key_tells_all_coins_apart() -> None:
    """As the seed writes it; a bar within a field is not the bar between two."""
    assert Intake("1", "Cent", 1909, "S", "cent", "Lincoln").cache_key("ebay") == "ebay|1909|S|cent|Lincoln|Cent"
    parts = ["a", "a|b", "b", "a\\", "\\|b", "a\\|b", ""]
    coins = [Intake("1", title, 1909, "S", "cent", series) for series in parts for title in parts]
    assert len({coin.cache_key("ebay") for coin in coins}) == len(coins)
