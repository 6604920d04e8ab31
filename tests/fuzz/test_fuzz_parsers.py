"""No page, file, table or answer from outside breaks the code that reads it: it is read, or refused on purpose, in time."""

from __future__ import annotations

import gzip
import multiprocessing
import random
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import brotli
import httpx
import orjson
import pytest

from actors.document.config import DocumentSettings
from actors.document.pdf import open_pdf
from actors.match.dates import from_wikidata, read_date
from actors.match.upload import read_csv
from actors.scrape.adapters import ADAPTERS, Unparsable
from actors.scrape.listing import moment
from actors.scrape.money import NoPrice, read_price
from actors.website.analysis import Unusable, read_analysis
from actors.website.page import parse_page
from pipeline.declare.errors import PipelineError, retry_after
from pipeline.http.client import Fetched
from pipeline.http.decoding import decoder_for
from sandbox import raw_pdf
from tests.fuzz.scale import dice, tell, times
from tests.fuzz.spoil import spoil, spoil_bytes, value

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LONGEST = 15.0
MOST = 1 << 20
REFUSALS = (PipelineError, NoPrice, Unusable, Unparsable)
HTML = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A title</title><base href="/b/">
<meta name="description" content="words"><meta property="og:title" content="t"><link rel="canonical" href="/c">
<script type="application/ld+json">{"@type": "Thing", "n": [1, {"a": null}]}</script><style>p{}</style></head><body>
<h1>One &amp; two</h1><p hidden>no</p><a href="/in">in</a><a href="https://example.org:99/x?y#z">out</a>
<div class="listings"><div class="listing" data-id="7" data-type="sold" data-currency="EUR"><a class="title" href="/l/7">A coin</a>
<span class="price">1.234,50 €</span><time class="date" datetime="2026-01-02T03:04:05Z">x</time></div></div></body></html>""".encode()
CSV = b'name;born;external_id\nAda Lovelace;1815;1\n"Grace ""Amazing"" Hopper";1906;2\n\nx;y;3\n'
ITEMS = {
    "items": [
        {
            "id": 1,
            "title": "A coin",
            "url": "/i/1",
            "price": {"value": "12.50", "currency": "EUR"},
            "type": "sold",
            "date": "2026-01-02",
        }
    ]
}
ANALYSIS = {
    "summary": "s",
    "site_type": "shop",
    "topics": ["a"],
    "key_points": ["b"],
    "audience": "all",
    "language": "en",
    "confidence": 0.5,
}
PDF = raw_pdf.printed([[raw_pdf.Line(72, 700, "A line of text")], [raw_pdf.Line(72, 600, "Another")]])
Read = Callable[[bytes, random.Random], object]


def fetched(body: bytes) -> Fetched:
    return Fetched(
        "http://localhost/x", "http://localhost/x", 200, httpx.Headers({"content-type": "text/html"}), body, len(body)
    )


def _text(body: bytes) -> str:
    return body.decode("utf-8", "surrogateescape")


def _page(body: bytes, chance: random.Random) -> None:
    kind = chance.choice(
        ["", "text/html", "text/html; charset=utf-16", "text/html; charset=\0", "x; charset=" + "y" * 100]
    )
    stored = parse_page(body, "http://localhost/a", kind).model_dump_json()
    # A backslash that the page itself wrote is doubled; a NUL's is not, and PostgreSQL could not store it.
    assert "\\u0000" not in stored.replace("\\\\", "") and stored.encode()


def _decoded(body: bytes, chance: random.Random) -> None:
    decoder = decoder_for(chance.choice(["gzip", "x-gzip", "deflate", "br", "identity", "zip"]))
    for start in range(0, len(body), 100):
        assert len(decoder.decode(body[start : start + 100], MOST)) <= MOST
    decoder.finish()


def _word(body: bytes, chance: random.Random) -> None:
    word = _text(body[:200])
    read_date(value(chance)), read_date(word), moment(word, NOW), retry_after(word, NOW)
    from_wikidata({"time": word, "precision": chance.choice([0, 7, 9, 11, 99])})
    read_price(word, chance.choice([None, "EUR", "JPY", "xyz"]))


def _json(good: Any) -> Callable[[random.Random], bytes]:
    def make(chance: random.Random) -> bytes:
        whole = orjson.dumps(spoil(good, chance), option=orjson.OPT_NON_STR_KEYS)
        return spoil_bytes(whole, chance) if chance.random() < 0.3 else whole

    return make


def _bytes(*good: bytes) -> Callable[[random.Random], bytes]:
    return lambda chance: spoil_bytes(chance.choice(good), chance) if chance.random() < 0.95 else chance.randbytes(300)


PARSERS: dict[str, tuple[Callable[[random.Random], bytes], Read, int]] = {
    "pages": (_bytes(HTML), _page, 4_000),
    "listing pages": (_bytes(HTML), lambda body, _: ADAPTERS["listing-page"].read(fetched(body), 50), 3_000),
    "item lists": (_json(ITEMS), lambda body, _: ADAPTERS["items-api"].read(fetched(body), 50), 5_000),
    "tables": (_bytes(CSV, CSV.replace(b";", b",")), lambda body, _: list(read_csv([body[:40], body[40:]])), 5_000),
    "answers of a model": (_json(ANALYSIS), lambda body, _: read_analysis(_text(body)), 5_000),
    "prices and dates": (
        _bytes(
            b"1.234,50 EUR",
            b"Lot of 3: US $45.00 (approx. 1 234,5 kr) + $4 shipping",
            b"2026-01-02T03:04:05Z",
            b"c. 44 BC",
            b"Fri, 02 Jan 2026 03:04:05 GMT",
        ),
        _word,
        10_000,
    ),
    "compressed bodies": (_bytes(gzip.compress(HTML), zlib.compress(HTML), brotli.compress(HTML)), _decoded, 3_000),
}


@pytest.mark.parametrize("name", PARSERS)
def test_it_is_read_or_refused_on_purpose(name: str) -> None:
    """Nothing else comes out of it, and not late."""
    make, read, full = PARSERS[name]
    chance, counts, wrong = dice(name), Counter[str](), Counter[str]()
    for _ in range(times(150, full)):
        body, started = make(chance), monotonic()
        try:
            read(body, chance)
            counts["read"] += 1
        except REFUSALS:
            counts["refused"] += 1
        except Exception as error:
            wrong[f"{type(error).__name__}: {str(error)[:150]} for {body[:200]!r}"] += 1
        assert monotonic() - started < LONGEST, f"took too long: {body[:300]!r}"
    tell(name, counts)
    assert not wrong, "\n".join(f"{n} × {what}" for what, n in wrong.most_common(10))


def test_a_spoiled_pdf_is_read_or_refused_and_the_process_lives(tmp_path: Path) -> None:
    """In a process of its own, as the phase that reads documents has one: native code may crash."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as child:
        counts = child.submit(_read_pdfs, tmp_path, times(60, 1_500)).result()
    tell("PDFs", counts)
    assert set(counts) <= {"read", "refused"}, counts


def _read_pdfs(folder: Path, n: int) -> Counter[str]:
    chance, counts, path = dice("PDFs"), Counter[str](), folder / "a.pdf"
    settings = DocumentSettings(dpi=72)
    for _ in range(n):
        path.write_bytes(spoil_bytes(PDF, chance))
        try:
            with open_pdf(path, settings) as found:
                found.page(1)
            counts["read"] += 1
        except PipelineError:
            counts["refused"] += 1
        except Exception as error:
            counts[f"{type(error).__name__}: {error}"] += 1
    return counts
