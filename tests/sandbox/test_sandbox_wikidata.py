"""The sandbox's Wikidata answers in the real one's shapes and is no kinder than it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from sandbox import Sandbox, running_sandbox
from sandbox.wikidata_entity import Entity, Statement
from sandbox.wikidata_fulltext import FullTextIndex
from sandbox.wikidata_prefix import PrefixIndex

PEOPLE = (
    Entity("Q1", {"en": "Jürgen Großmüller"}, {"en": "German chemist (1850–1901)"}, {"de": ("Grossmüller",)}),
    Entity("Q2", {"en": "Jurgen Grossmann", "fr": "Londres"}, claims={"P31": (Statement("Q5"),)}),
    Entity("Q3", {"en": "Ann O'Hara-Smith"}, claims={"P31": (Statement("Q5", "deprecated"), Statement("Q515"))}),
    Entity("Q4", {"ja": "武田春樹", "mul": "Takeda Haruki"}),
    *(Entity(f"Q{n}", {"en": "John Williams"}) for n in range(100, 160)),
)


def ask(sandbox: Sandbox, **question: Any) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{sandbox.url}/w/api.php", params={**question, "format": "json"}).json()
    return found


def begins(text: str, language: str = "en", strict: bool = False) -> list[str]:
    return [hit.entity.qid for hit in PrefixIndex(PEOPLE).search(text, language, strict)]


def has(text: str) -> list[str]:
    return list(FullTextIndex(PEOPLE).search(text))


def test_a_prefix_is_all_that_wbsearchentities_finds() -> None:
    """Whatever the case, the accents, the hyphens, the language; no typing error, no other order, no word within."""
    assert begins("JURGEN GROSS") == ["Q1", "Q2"]
    assert begins("ann o hara smith") == begins("Ann O'H") == ["Q3"]
    assert begins("Londr", "en") == ["Q2"] and begins("武田") == ["Q4"] and begins("takeda", "de") == ["Q4"]
    assert begins("Jürgne") == begins("Grossmann Jurgen") == begins("Haruki") == begins("  ") == []


def test_the_language_decides_the_order_and_only_strictly_what_is_found() -> None:
    """Exact before folded before a mere beginning; a label of the language before one it falls back to."""
    assert begins("Grossmüller", "de") == ["Q1"]
    assert begins("Londres", "fr", strict=True) == ["Q2"] and begins("Londres", "en", strict=True) == []
    assert begins("takeda haruki", "ja", strict=True) == ["Q4"]


def test_full_text_finds_words_in_any_order_and_forgives_only_what_it_is_told_to() -> None:
    """A slip only with a tilde, and not in the first two letters."""
    assert has("chemist grossmuller") == ["Q1"] and has("hara smith") == [] and has("o'hara smith") == ["Q3"]
    assert has("grosmuller") == [] and has("grosmuller~ jurgen") == ["Q1"] and has("rgossmuller~") == []
    assert has("grossmuller~0") == ["Q1"] and has("gr*ller") == ["Q1"] and has('"jurgen grossmann"') == ["Q2"]
    assert has("jurgen -chemist") == ["Q2"] and set(has("chemist OR takeda")) == {"Q1", "Q4"}
    assert set(has("武春")) == {"Q4"}


def test_haswbstatement_sees_statements_of_every_rank() -> None:
    """Also those that were found to be wrong."""
    assert set(has("haswbstatement:P31=Q5")) == {"Q2", "Q3"}
    assert has("smith~ haswbstatement:P31=Q515") == ["Q3"] and has("jurgen haswbstatement:P31=Q515|P31=Q5") == ["Q2"]


def test_who_has_more_of_the_words_comes_first() -> None:
    """Of a search for any of them."""
    assert has("grossmann~ OR jurgen~")[0] == "Q2"


def test_a_page_of_hits_says_where_the_next_begins(sandbox: Sandbox) -> None:
    """``search-continue`` and ``continue``; no word of a snippet."""
    first = ask(sandbox, action="wbsearchentities", search="s", language="en", limit=5)
    assert len(first["search"]) == 5 == first["search-continue"]
    second = ask(sandbox, action="wbsearchentities", search="s", language="en", limit=5, **{"continue": 5})
    assert not {hit["id"] for hit in first["search"]} & {hit["id"] for hit in second["search"]}
    words = ask(sandbox, action="query", list="search", srsearch="haswbstatement:P31=Q5", srlimit=3, sroffset=3)
    assert words["continue"]["sroffset"] == 6 and words["query"]["searchinfo"]["totalhits"] > 200
    assert [set(hit) for hit in words["query"]["search"]] == [{"ns", "title", "pageid"}] * 3


def test_sixty_namesakes_are_two_pages() -> None:
    """More than fifty at once are fifty."""
    asked = {"action": "wbsearchentities", "search": "john williams", "language": "en", "limit": 500}
    with running_sandbox(known=PEOPLE) as own:
        first, second = ask(own, **asked), ask(own, **asked, **{"continue": 50})
    assert (len(first["search"]), first["search-continue"]) == (50, 50)
    assert len(second["search"]) == 10 and "search-continue" not in second


def test_entities_come_with_every_rank_and_a_redirect_under_the_number_asked_for(sandbox: Sandbox) -> None:
    """What was merged says from where to where; only ``redirects=no`` makes it missing."""
    found = ask(sandbox, action="wbgetentities", ids="Q990201|Q1", languages="en", props="labels|claims")["entities"]
    assert found["Q990201"]["id"] == "Q900001" and found["Q990201"]["redirects"] == {"from": "Q990201", "to": "Q900001"}
    assert set(found["Q990201"]["labels"]) == {"en"} and found["Q1"] == {"id": "Q1", "missing": ""}
    again = ask(sandbox, action="wbgetentities", ids="Q990201", redirects="no")["entities"]
    assert "missing" in again["Q990201"]
    [known] = ask(sandbox, action="wbgetentities", ids="Q900009")["entities"].values()
    assert {claim["rank"] for claim in known["claims"]["P569"]} == {"normal", "deprecated"}


def test_what_is_merged_is_still_found_under_its_old_number(sandbox: Sandbox) -> None:
    """As by an index that lags behind."""
    found = ask(sandbox, action="wbsearchentities", search="Sergei Chernyshov", language="en")["search"]
    assert {"Q900001", "Q990201"} <= {hit["id"] for hit in found}


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ({"action": "wbsearchentities", "language": "en"}, "missingparam"),
        ({"action": "wbsearchentities", "search": "a", "language": "not one"}, "badvalue"),
        ({"action": "wbsearchentities", "search": "a", "language": "en", "limit": "x"}, "badinteger"),
        ({"action": "wbsearchentities", "search": "a", "language": "en", "continue": 10_001}, "outofrange"),
        ({"action": "query", "list": "search", "srsearch": "a" * 301}, "cirrussearch-query-too-long"),
        ({"action": "wbgetentities"}, "param-missing"),
        ({"action": "wbgetentities", "ids": "P31"}, "no-such-entity"),
        ({"action": "wbgetentities", "ids": "|".join(f"Q{n}" for n in range(51))}, "toomanyvalues"),
        ({"action": "dance"}, "badvalue"),
    ],
)
def test_errors_have_status_200_and_a_code(sandbox: Sandbox, question: dict[str, Any], code: str) -> None:
    """In the body and in a header."""
    answer = httpx.get(f"{sandbox.url}/w/api.php", params={**question, "format": "json"})
    assert (answer.status_code, answer.headers["mediawiki-api-error"]) == (200, code)
    assert answer.json()["error"]["code"] == code and answer.json()["error"]["info"]


def test_a_lagging_database_refuses_those_who_said_how_much_is_too_much(sandbox: Sandbox) -> None:
    """``maxlag`` with a Retry-After; others are answered."""
    httpx.put(f"{sandbox.url}/w/_lag", json={"seconds": 6.5, "times": 1})
    assert "entities" in ask(sandbox, action="wbgetentities", ids="Q5")
    said = ask(sandbox, action="wbgetentities", ids="Q5", maxlag=5)["error"]
    assert (said["code"], said["lag"]) == ("maxlag", 6.5)
    assert "entities" in ask(sandbox, action="wbgetentities", ids="Q5", maxlag=5)


def test_a_client_without_a_name_is_sent_away(sandbox: Sandbox) -> None:
    """As Wikimedia's policy has it."""
    answer = httpx.get(f"{sandbox.url}/w/api.php", headers={"User-Agent": ""})
    assert answer.status_code == 403 and "user-agent" in answer.text
