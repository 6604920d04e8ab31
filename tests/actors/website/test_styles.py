"""What a page's own style sheets hide, break into lines and write in other letters, as Chromium shows it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.website.css.media import is_for_screens
from actors.website.css.parsing import parse_text
from actors.website.page import Page, parse_page


def page(sheet: str, body: str) -> Page:
    html = f"<!doctype html><html lang=en><title>T</title><style>{sheet}</style><body>{body}"
    return parse_page(html.encode(), "http://example.com/", "text/html; charset=utf-8")


def headings(sheet: str, body: str) -> str:
    return " ".join(heading.text for heading in page(sheet, body).headings)


@pytest.mark.parametrize(
    ("sheet", "body", "shown"),
    [
        (".x{display:none}", "<h1>A</h1><h2 class='y x'>B</h2>", "A"),
        (".a{display:none}.a{display:block}", "<h1 class=a>A</h1>", "A"),
        ("#i{display:block}.h{display:none}", "<h1 id=i class=h>A</h1><h2 class=h>B</h2>", "A"),
        (".a{display:none!important}", "<h1 class=a style='display:block'>A</h1><h2>B</h2>", "B"),
        (".a{display:none;display:nonsense}", "<h1 class=a>A</h1><h2>B</h2>", "B"),
        ("[hidden]{display:block}", "<h1 hidden>A</h1><h2 hidden=until-found>B</h2>", "A"),
        ("h2:not(.on):not([id]){display:none}", "<h2>A</h2><h2 class=on>B</h2><h2 id=i>C</h2>", "B C"),
        (":is(h1,h2).z, :where(h3){display:none}", "<h1 class=z>A</h1><h2>B</h2><h3>C</h3>", "B"),
        ("h1+h2,h1~h4{display:none}", "<h1>A</h1><h2>B</h2><h3>C</h3><h4>D</h4><h2>E</h2>", "A C E"),
        ("div>h2{display:none}", "<div><h2>A</h2><p><h2>B</h2></p><section><h2>C</h2></section></div>", "C"),
        ("h2:nth-child(2n+1),h3:first-of-type{display:none}", "<h2>A</h2><h2>B</h2><h3>C</h3><h3>D</h3>", "B D"),
        (
            "a[href^='http://ads'],a[rel~=ad]{display:none}",
            "<h1><a href=http://ads.x/>A</a> <a rel='b ad'>B</a>C</h1>",
            "C",
        ),
        ("[data-x$=b i]{display:none}", "<h1 data-x=aB>A</h1><h2 data-x=Ba>B</h2>", "B"),
        (".w:hover{display:none} .v::before{display:none}", "<h1 class=w>A</h1><h2 class=v>B</h2>", "A B"),
        (
            ".n{& h1{display:none} >h2{display:none} h3{display:none}}",
            "<div class=n><h1>A</h1><h2>B</h2><h3>C</h3></div><h3>D</h3>",
            "D",
        ),
        ("@media print{h1{display:none}} @media (max-width:600px){h2{display:none}}", "<h1>A</h1><h2>B</h2>", "A B"),
        (
            "@media screen and (min-width:600px){h1{display:none}} @media (400px<=width<2000px){h2{display:none}}",
            "<h1>A</h1><h2>B</h2>",
            "",
        ),
        (
            "@supports (display:grid){h1{display:none}} @supports not (display:grid){h2{display:none}}",
            "<h1>A</h1><h2>B</h2>",
            "B",
        ),
        ("@layer a{h1{display:none}} h1{display:block} @layer b{h2{display:none}}", "<h1>A</h1><h2>B</h2>", "A"),
        ("body *{visibility:hidden} .v,.v *{visibility:visible}", "<h1>A</h1><h2 class=v>B <i>C</i></h2>", "B C"),
        ("div{content-visibility:hidden}", "<div><h1>A</h1></div><h2>B</h2>", "B"),
        (
            "h1{text-transform:uppercase} h2{text-transform:capitalize}",
            "<h1>stra\u00dfe <i>x</i></h1><h2>two words</h2>",
            "STRASSE X Two Words",
        ),
        (
            "span{display:block} h2{display:flex}",
            "<h1><span>A</span><span>B</span></h1><h2><b>C</b><b>D</b></h2>",
            "A B C D",
        ),
        (
            "",
            "<details><summary><h2>S</h2></summary><h3>in</h3></details><details open><h3>open</h3></details>",
            "S open",
        ),
        ("h1:has(p), h1:unheard-of {display:none}", "<h1>A</h1>", "A"),
    ],
)
def test_what_is_shown_is_what_a_browser_shows(sheet: str, body: str, shown: str) -> None:
    """One case for each part of a selector, of the cascade, and of what is looked at."""
    assert headings(sheet, body) == shown


@pytest.mark.parametrize(
    "sheet",
    [
        "* * * * * * * {display:none}",
        "a ~ a ~ a ~ a ~ a {display:none}",
        ":is(:is(:is(*))) {display:none}" * 500,
        "".join(f".c{n}{{display:none}}" for n in range(9000)),
        "a{" * 20_000,
        "@media screen{" * 20_000,
        "display:" + "(" * 50_000,
        ":not(" * 5000,
    ],
    ids=["depth", "brothers", "lists", "rules", "nesting", "media", "brackets", "negations"],
)
def test_a_hostile_sheet_is_read_in_bounded_time(sheet: str) -> None:
    """What is beyond the bounds hides nothing, and the page says that something was left out or is whole."""
    begun = time.process_time()
    found = page(sheet, "<div>" * 200 + "<a>x" * 3000 + "<h1>A</h1>")
    assert isinstance(found, Page) and time.process_time() - begun < 30


def test_a_page_whose_styles_were_not_all_read_says_so() -> None:
    """What the rest hides was taken for shown."""
    rules = "".join(f".c{n}{{display:none}}" for n in range(5000))
    assert page(rules, "<h1>A</h1>").truncated and not page(".c{display:none}", "<h1>A</h1>").truncated


@given(st.text(alphabet="a.#:*>+~[]()=\"'&,| \t-1n", max_size=60))
def test_any_text_is_a_selector_or_none(text: str) -> None:
    """Nothing in a sheet makes the reader fail."""
    import tinycss2

    parse_text(text)
    is_for_screens(tinycss2.parse_component_value_list(text))
