"""A page is read completely, safely, and in bounded time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.website.page import Page, parse_page
from actors.website.reader import Bounds

URL = "https://www.example.com/shop/index.html"
HTML = """<!doctype html><html lang="en_GB"><head>
<base href="/shop/"><title> Tea
  &amp; Cake </title>
<meta name="Description" content="A shop.">
<meta property="og:title" content="OG Tea"><meta property="og:type" content="store">
<link rel="alternate canonical" href="./?a=1#top">
<script type="application/ld+json">{"@type": "Store", "rank": 1e999, "name": "T\\u0000ea"}</script>
<script type="application/ld+json">{broken</script>
<style>p { color: red }</style></head>
<body><h1>Welcome <em>home</em></h1><p>First&nbsp;line.<br>Second line.</p>
<div hidden>secret <p>deep</p></div><div style="display: NONE">secret</div><noscript>secret</noscript>
<h2>Goods</h2><ul><li>Green tea<li>Black tea</ul>
<a href="cakes.html">Cakes</a> <a href="//example.com/x">same site</a> <a href="https://other.org/">Other</a>
<a href="mailto:a@b.c">mail</a> <a href="javascript:x()">js</a> <a href="http://[bad">bad</a>
<a href="cakes.html#2">again</a>
<svg><title>not me</title><defs><text>secret</text></defs></svg><template>secret</template></body></html>"""


@pytest.fixture(scope="module")
def page() -> Page:
    return parse_page(HTML.encode(), URL, "text/html; charset=utf-8")


def test_the_head_is_read(page: Page) -> None:
    """Title, description, language, canonical address and Open Graph."""
    assert (page.title, page.description, page.language) == ("Tea & Cake", "A shop.", "en-gb")
    assert page.canonical == "https://www.example.com/shop/?a=1"
    assert page.open_graph == {"title": "OG Tea", "type": "store"}


def test_visible_text_only_and_in_order(page: Page) -> None:
    """Scripts, styles and hidden parts are left out; headings are marked."""
    lines = page.text.split("\n")
    assert lines[:6] == ["# Welcome home", "First line.", "Second line.", "## Goods", "Green tea", "Black tea"]
    assert "secret" not in page.text
    assert [(h.level, h.text) for h in page.headings] == [(1, "Welcome home"), (2, "Goods")]


def test_links_are_sorted_into_own_and_foreign(page: Page) -> None:
    """Resolved against the base, each once; what is not http is left out."""
    assert [link.url for link in page.links_in] == ["https://www.example.com/shop/cakes.html", "https://example.com/x"]
    assert [(link.url, link.text) for link in page.links_out] == [("https://other.org/", "Other")]


def test_structured_data_is_kept_as_far_as_it_can_be_stored(page: Page) -> None:
    """Broken JSON is left out; infinity and NUL, which PostgreSQL refuses, do not get through."""
    assert page.structured_data == [{"@type": "Store", "rank": None, "name": "Tea"}]


def test_a_page_without_title_borrows_one() -> None:
    """From Open Graph, else from the first heading."""
    assert parse_page(b"<meta property=og:title content=Borrowed>", URL).title == "Borrowed"
    assert parse_page(b"<h1>Heading</h1>", URL).title == "Heading"


def test_a_page_survives_the_way_through_json(page: Page) -> None:
    """What is stored is what is read back."""
    assert Page.model_validate(json.loads(page.model_dump_json())) == page


HOSTILE = {
    "deep": b"<div>" * 900_000,
    "deep and unbalanced": b"<div>" * 300 + b"<span></div></x></y></b>" * 150_000,
    "attributes": b"<p " + b" ".join(b"a%d=1" % n for n in range(400_000)) + b">x",
    "quoted attributes": b'<p x=">" ' + b" ".join(b'a%d=">"' % n for n in range(300_000)) + b">x",
    "open comment": b"<!--" * 1_000_000,
    "open tags": b"<a " * 1_500_000,
    "open quotes": b'<a b="' * 800_000,
    "links": b"<a href=/x>y" * 400_000,
    "headings": b"<h1>x" * 800_000,
    "metas": b"<meta name=a content=b>" * 200_000,
    "formatting": b"<b><i><u><p></b></i></u>" * 180_000,
    "tables": b"<table><tr><td>" * 300_000,
    "entities": b"&lt;" * 1_200_000,
    "less-than": b"<" * 5_000_000,
    "nul": b"\0" * 5_000_000,
    "text": b"word " * 1_000_000,
    "json": b'<script type="application/ld+json">' + b"[" * 60_000 + b"</script>",
    "jsons": b'<script type="application/ld+json">1</script>' * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_html_is_read_in_bounded_time_and_space(name: str) -> None:
    """Five megabytes of spite take seconds at most, and leave little to store."""
    begun = time.process_time()  # ours alone, however busy the machine is
    page = parse_page(HOSTILE[name], URL)
    assert time.process_time() - begun < 10
    assert len(page.model_dump_json()) < 2_000_000


def test_what_was_left_out_is_said() -> None:
    """A bound that was met shows in the page."""
    assert parse_page(b"<p>" + b"long text " * 100, URL, bounds=Bounds(text=100)).truncated
    assert not parse_page(b"<p>short", URL).truncated


@given(st.binary(max_size=4000))
def test_any_bytes_are_a_page(body: bytes) -> None:
    """Never raises; and what comes out can be stored."""
    storable = parse_page(body, URL).model_dump_json()
    # a backslash of the page itself is written twice
    assert "\\u0000" not in storable.replace("\\\\", "")
    storable.encode()


TAGS = st.sampled_from(
    [
        "<div>",
        "</div>",
        "<p>",
        "<a href='x'>",
        "</a>",
        "<h1>",
        "</h2>",
        "<title>",
        "</title>",
        "<script>",
        "</script>",
        "<base href='http://[x'>",
        "<script type='application/ld+json'>",
        "<!--",
        "-->",
        "<svg>",
        "<p hidden>",
        "<br/>",
        "&#0;",
        "&#xD800;",
        "\ud800",
        '{"a":',
        "<meta name=x content=y>",
        "<html lang='\ud800'>",
        "<",
        ">",
        "\x00",
    ]
)


@given(st.lists(TAGS | st.text(max_size=20), max_size=60))
def test_any_heap_of_tags_is_a_page(parts: list[str]) -> None:
    """As above, with the pieces that matter."""
    page = parse_page("".join(parts).encode("utf-8", "surrogatepass"), URL)
    storable = page.model_dump_json()
    assert "\\u0000" not in storable
    storable.encode()
