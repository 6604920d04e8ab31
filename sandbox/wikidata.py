"""Wikidata's API (``wbsearchentities``, ``wbgetentities``) over made-up entities, in the shapes of the real one."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import deque
from functools import lru_cache
from time import monotonic
from typing import Any

from rapidfuzz import fuzz, process
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox.wikidata_world import Known, world

ENTITY = "http://www.wikidata.org/entity/"
ALIKE = 72
MOST_IDS = 50


def routes() -> list[BaseRoute]:
    """``/w/api.php``, and ``/w/_arrivals``: when each of its requests came."""
    arrivals: deque[float] = deque(maxlen=500_000)

    async def api(request: Request) -> Response:
        arrivals.append(monotonic())
        return answer(dict(request.query_params), request.headers.get("authorization", ""))

    async def show(request: Request) -> Response:
        if request.method == "DELETE":
            arrivals.clear()
        return JSONResponse({"arrivals": list(arrivals), "busiest_second": busiest_second(arrivals)})

    return [Route("/w/api.php", api), Route("/w/_arrivals", show, methods=["GET", "DELETE"])]


def busiest_second(arrivals: deque[float]) -> int:
    """The most requests in any one second, wherever it begins."""
    most, window = 0, deque[float]()
    for moment in arrivals:
        window.append(moment)
        while moment - window[0] >= 1.0:
            window.popleft()
        most = max(most, len(window))
    return most


def answer(question: dict[str, str], authorization: str) -> Response:
    """What the real one would say; errors come with status 200 and say so in a header."""
    if authorization == "Bearer wrong":
        return _error("mwoauth-invalid-authorization", "The authorization headers in your request are not valid")
    if question.get("format") != "json":
        return _error("unknown_format", "The sandbox speaks format=json only")
    match question.get("action"):
        case "wbsearchentities":
            return _search(question)
        case "wbgetentities":
            return _get(question)
    return _error("badvalue", 'Unrecognized value for parameter "action".')


def _search(question: dict[str, str]) -> Response:
    for name in ("search", "language"):
        if not question.get(name):
            return _error("missingparam", f'The "{name}" parameter must be set.')
    limit = question.get("limit", "7")
    if not limit.isdigit() or not 1 <= int(limit) <= 50:
        return _error("badinteger", f'Invalid value "{limit[:20]}" for integer parameter "limit".')
    found = search(question["search"], question["language"])[: int(limit)]
    return JSONResponse({"searchinfo": {"search": question["search"]}, "search": found, "success": 1})


@lru_cache(maxsize=20_000)
def search(text: str, language: str) -> list[dict[str, Any]]:
    """Prefixes first, then what is written nearly so; labels and aliases of the language, and those of all."""
    terms, begins = _terms(language), _folded(text)
    spellings = [term[0] for term in terms]
    near = process.extract(_sorted_words(text), spellings, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=100)
    places = {place: score for _, score, place in near}
    places |= {place: 99.0 for place, term in enumerate(terms) if len(begins) > 2 and term[1].startswith(begins)}
    best: dict[str, dict[str, Any]] = {}
    for place in sorted(places, key=lambda p: (-places[p], p)):
        _, _, known, code, kind, said = terms[place]
        best.setdefault(known.qid, _hit(known, language, code, kind, said))
    return list(best.values())


def _hit(known: Known, language: str, code: str, kind: str, said: str) -> dict[str, Any]:
    label = known.labels.get(language) or known.name
    hit = {
        "id": known.qid,
        "title": known.qid,
        "pageid": int(known.qid[1:]),
        "concepturi": ENTITY + known.qid,
        "repository": "wikidata",
        "url": f"//www.wikidata.org/wiki/{known.qid}",
        "display": {
            "label": {"value": label, "language": language},
            "description": {"value": known.description, "language": "en"},
        },
        "label": label,
        "description": known.description,
        "match": {"type": kind, "language": code, "text": said},
    }
    return hit | {"aliases": [said]} if kind == "alias" else hit


@lru_cache(maxsize=50)
def _terms(language: str) -> list[tuple[str, str, Known, str, str, str]]:
    found = []
    for known in world():
        for code in (language, "mul"):
            said = [("label", known.labels[code])] if code in known.labels else []
            said += [("alias", alias) for alias in known.aliases.get(code, ())]
            found += [(_sorted_words(text), _folded(text), known, code, kind, text) for kind, text in said]
    return found


def _get(question: dict[str, str]) -> Response:
    ids = [part for part in question.get("ids", "").split("|") if part]
    if not ids:
        return _error("param-missing", 'Either provide the item "ids" or pairs of "sites" and "titles"')
    if len(ids) > MOST_IDS:
        return _error("toomanyvalues", f'Too many values supplied for parameter "ids". The limit is {MOST_IDS}.')
    bad = next((qid for qid in ids if not (qid[:1] == "Q" and qid[1:].isdigit())), None)
    if bad is not None:
        return _error("no-such-entity", f'Could not find an entity with the ID "{bad[:40]}".')
    languages = question.get("languages", "").split("|") if question.get("languages") else None
    props = set(question.get("props", "labels|aliases|descriptions|claims").split("|"))
    return JSONResponse({"entities": {qid: entity(qid, languages, props) for qid in ids}, "success": 1})


def entity(qid: str, languages: list[str] | None, props: set[str]) -> dict[str, Any]:
    """One entity with the parts that were asked for, or the mark that it is missing."""
    known = _by_id().get(qid)
    if known is None:
        return {"id": qid, "missing": ""}
    wanted = languages if languages is not None else ["en", *known.labels]
    parts: dict[str, Any] = {
        "labels": {c: {"language": c, "value": known.labels[c]} for c in wanted if c in known.labels},
        "descriptions": {"en": {"language": "en", "value": known.description}} if "en" in wanted else {},
        "aliases": {c: [{"language": c, "value": a} for a in known.aliases[c]] for c in wanted if c in known.aliases},
        "claims": _claims(known),
    }
    head = {"pageid": int(qid[1:]), "ns": 0, "title": qid, "lastrevid": 1, "modified": "2026-01-01T00:00:00Z"}
    return head | {"type": "item", "id": qid} | {name: value for name, value in parts.items() if name in props}


def _claims(known: Known) -> dict[str, Any]:
    kind = {"entity-type": "item", "numeric-id": int(known.kind[1:]), "id": known.kind}
    claims = {"P31": [_statement(known.qid, "P31", "wikibase-item", {"value": kind, "type": "wikibase-entityid"})]}
    for prop, date in (("P569", known.born), ("P570", known.died), ("P571", known.founded)):
        if date:
            claims[prop] = [_statement(known.qid, prop, "time", {"value": _time(date), "type": "time"})]
    return claims


def _time(date: str) -> dict[str, Any]:
    parts = [*date.split("-"), "00", "00"][:3]
    return {
        "time": f"+{'-'.join(parts)}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": 9 + date.count("-"),
        "calendarmodel": f"{ENTITY}Q1985727",
    }


def _statement(qid: str, prop: str, datatype: str, datavalue: dict[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha1(f"{qid}{prop}{datavalue}".encode(), usedforsecurity=False).hexdigest()
    snak = {"snaktype": "value", "property": prop, "hash": digest, "datavalue": datavalue, "datatype": datatype}
    return {"mainsnak": snak, "type": "statement", "id": f"{qid}${digest[:8]}-{digest[8:12]}", "rank": "normal"}


def _error(code: str, info: str) -> Response:
    more = "See https://www.wikidata.org/w/api.php for API usage."
    body = {"error": {"code": code, "info": info, "*": more}, "servedby": "sandbox"}
    return JSONResponse(body, headers={"MediaWiki-API-Error": code})


@lru_cache(maxsize=1)
def _by_id() -> dict[str, Known]:
    return {known.qid: known for known in world()}


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:200]).casefold()
    return "".join(c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))


def _sorted_words(text: str) -> str:
    return " ".join(sorted(_folded(text).split()))
