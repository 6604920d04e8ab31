"""The labelled sets have the shape that their README promises. Nothing here measures anything."""

from __future__ import annotations

import csv
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HALVES = ("develop", "measured")
SETS = {
    "records": ("records.jsonl", 600),
    "prices": ("prices.csv", 260),
    "answers": ("answers.json", 60),
    "pages": ("pages.json", 130),
    "scans": ("scans.json", 40),
}
GROUP = {"records": "category", "prices": "form", "answers": "form", "pages": "form", "scans": "form"}
CURRENCY_CODES = (
    "AED ARS AUD BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW KWD MXN MYR "
    "NOK NZD PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR"
)
CURRENCIES = set(CURRENCY_CODES.split())
TYPES = {"person", "company", "city", "university", "film", "river"}
KEYS = {"summary", "topics", "language", "sentiment"}
Row = dict[str, Any]


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows(name: str, half: str) -> list[Row]:
    path = HERE / name / half / SETS[name][0]
    if path.suffix == ".jsonl":
        return lines(path)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    loaded: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def both(name: str) -> list[Row]:
    return [row for half in HALVES for row in rows(name, half)]


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_large_enough_and_its_halves_are_alike(name: str) -> None:
    develop, measured = (rows(name, half) for half in HALVES)
    assert len(develop) + len(measured) >= SETS[name][1]
    assert abs(len(develop) - len(measured)) <= 1
    groups = [Counter(row[GROUP[name]] for row in half) for half in (develop, measured)]
    assert all(abs(groups[0][group] - groups[1][group]) <= 1 for group in groups[0] | groups[1])


@pytest.mark.parametrize("name", SETS)
def test_ids_are_unique(name: str) -> None:
    ids = [row["id"] for row in both(name)]
    assert len(ids) == len(set(ids))


def store(name: str) -> dict[str, Row]:
    found = lines(HERE / "records" / "store" / f"{name}.jsonl")
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row for row in found}


def values(claims: list[Any]) -> list[Any]:
    return [claim["value"] if isinstance(claim, dict) else claim for claim in claims]


def test_the_store_refers_only_to_what_it_holds() -> None:
    entities, types, places, redirects = (store(name) for name in ("entities", "types", "places", "redirects"))
    assert len(entities) >= 500
    assert all(entity["labels"] for entity in entities.values())
    for entity in [*entities.values(), *places.values()]:
        claims = entity["claims"]
        assert set(values(claims["P31"])) <= set(types)
        for place in ("P17", "P27", "P131", "P495"):
            assert set(values(claims.get(place, []))) <= set(places)
    assert all(set(row.get("subclass_of", [])) <= set(types) for row in types.values())
    assert {row["to"] for row in redirects.values()} <= set(entities)
    assert not set(redirects) & set(entities)


def test_records_expect_entities_of_the_store() -> None:
    entities = store("entities")
    for record in both("records"):
        expected = record["expected"]
        assert expected in {"none", "ambiguous"} or expected in entities, record
        assert record.get("type", "person") in TYPES
        assert (expected == "ambiguous") == ("candidates" in record)
        assert set(record.get("candidates", [])) <= set(entities)


def test_prices_have_known_currencies_and_fit_their_kind() -> None:
    prices = both("prices")
    assert len({row["currency"] for row in prices}) > 15
    for row in prices:
        assert row["currency"] in CURRENCIES | {""}
        assert row["market_currency"] in CURRENCIES | {""}
        assert int(row["quantity"]) >= 1
        assert bool(row["amount"]) == (row["kind"] in {"price", "approximate"}), row
        assert bool(row["low"] and row["high"]) == (row["kind"] == "range"), row
        assert row["kind"] in {"price", "approximate", "range", "unreadable"}
        assert all(Decimal(row[key]) >= 0 for key in ("amount", "low", "high") if row[key])


def test_no_price_string_is_in_both_halves() -> None:
    develop, measured = ({(row["text"], row["market_currency"]) for row in rows("prices", half)} for half in HALVES)
    blank = {row for row in develop | measured if not row[0].strip()}
    assert not develop & measured - blank


@pytest.mark.parametrize("half", HALVES)
def test_answers_have_a_file_and_an_expectation(half: str) -> None:
    for answer in rows("answers", half):
        (HERE / "answers" / half / answer["file"]).read_text(encoding="utf-8")
        expected = answer["expected"]
        assert expected in ("unreadable", "needs repair") or set(expected) == KEYS


@pytest.mark.parametrize("half", HALVES)
def test_pages_have_their_files_and_an_expectation(half: str) -> None:
    for page in rows("pages", half):
        answers = [page, *page.get("resources", [])]
        assert all((HERE / "pages" / half / row["file"]).is_file() for row in answers if "file" in row)
        expected = page["expected"]
        if expected.get("allowed") is False:
            continue
        assert {"title", "headings", "language"} <= set(expected), page["id"]
        assert "links" in expected or "link_count" in expected
        assert all(1 <= level <= 6 and text == " ".join(text.split()) for level, text in expected["headings"])


def test_scans_expect_the_text_of_their_blocks() -> None:
    for document in both("scans"):
        assert document["language"] in {"en", "fr"}
        for page in document["pages"]:
            assert (page["source"] == "scan") == ("scan" in page)
            assert page["text_layer"]["kind"] in {"none", "good", "wrong", "partial", "shifted"}
            assert " ".join(words(page["blocks"])) == " ".join(page["expected"].split())


def words(blocks: list[Row]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        match block["kind"]:
            case "heading" | "paragraph":
                found += block["text"].split()
            case "lines":
                found += " ".join(block["lines"]).split()
            case "table":
                found += " ".join(cell for row in block["rows"] for cell in row).split()
            case "columns":
                found += [word for column in block["columns"] for word in words(column)]
    return found
