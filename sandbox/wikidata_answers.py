"""What Wikidata's API says to a question; errors come with status 200 and name their code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sandbox.wikidata_entity import ENTITY, Entity
from sandbox.wikidata_fulltext import FullTextIndex
from sandbox.wikidata_prefix import Hit, PrefixIndex, chain

MOST_IDS, MOST_HITS, MOST_RESULTS = 50, 50, 500
FURTHEST, LONGEST_QUERY = 10_000, 300
PROPS = "info|sitelinks|aliases|labels|descriptions|claims|datatype"
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*")
Question = dict[str, str]


class Refused(Exception):
    """The question is not answered, and why."""

    def __init__(self, code: str, info: str) -> None:
        super().__init__(info)
        self.code, self.info = code, info


class Store:
    """The entities and their indexes. An index still knows what was merged, under its old number."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.entities = {entity.qid: entity for entity in entities}
        self.prefixes = PrefixIndex(self.entities.values())
        self.texts = FullTextIndex(self.entities.values())


def answer(store: Store, question: Question, authorization: str) -> dict[str, Any]:
    """What the real one would say."""
    if authorization == "Bearer wrong":
        raise Refused("mwoauth-invalid-authorization", "The authorization headers in your request are not valid")
    if question.get("format") != "json":
        raise Refused("unknown_format", "The sandbox speaks format=json only")
    match question.get("action"), question.get("list"):
        case "wbsearchentities", _:
            return _begins_so(store, question)
        case "wbgetentities", _:
            return _entities(store, question)
        case "query", "search":
            return _has_words(store, question)
    raise Refused("badvalue", f'Unrecognized value for parameter "action": {question.get("action", "")[:40]}.')


def refusal(error: Refused) -> dict[str, Any]:
    """As the body of an answer."""
    more = "See https://www.wikidata.org/w/api.php for API usage."
    return {"error": {"code": error.code, "info": error.info, "*": more}, "servedby": "sandbox"}


def _begins_so(store: Store, question: Question) -> dict[str, Any]:
    search, language = _given(question, "search"), _given(question, "language")
    if not _LANGUAGE.fullmatch(language):
        raise Refused("badvalue", f'Unrecognized value for parameter "language": {language[:40]}.')
    limit = min(_number(question, "limit", 7), MOST_HITS)
    first = _number(question, "continue", 0, FURTHEST)
    hits = store.prefixes.search(search, language, "strictlanguage" in question)
    codes = chain(question.get("uselang", "en"))
    said: dict[str, Any] = {"searchinfo": {"search": search}}
    said["search"] = [_hit(hit, codes) for hit in hits[first : first + limit]]
    # The real one goes on to offer a further page only this far, however many there are.
    if len(hits) > first + limit and first + limit <= MOST_HITS:
        said["search-continue"] = first + limit
    return said | {"success": 1}


def _hit(hit: Hit, codes: tuple[str, ...]) -> dict[str, Any]:
    entity = hit.entity
    shown: dict[str, Any] = {
        "id": entity.qid,
        "title": entity.qid,
        "pageid": entity.number,
        "concepturi": ENTITY + entity.qid,
        "repository": "wikidata",
        "url": f"//www.wikidata.org/wiki/{entity.qid}",
        "display": {},
    }
    for name, terms in (("label", entity.labels), ("description", entity.descriptions)):
        code = next((code for code in codes if code in terms), None)
        if code is not None:
            shown["display"][name] = {"value": terms[code], "language": code}
            shown[name] = terms[code]
    shown["match"] = {"type": hit.kind, "language": hit.language, "text": hit.text}
    return shown if shown.get("label") == hit.text else shown | {"aliases": [hit.text]}


def _has_words(store: Store, question: Question) -> dict[str, Any]:
    search = _given(question, "srsearch")
    if len(search) > LONGEST_QUERY:
        info = f"Search request is longer than the maximum allowed length. ({len(search)} > {LONGEST_QUERY})"
        raise Refused("cirrussearch-query-too-long", info)
    limit = min(_number(question, "srlimit", 10), MOST_RESULTS)
    first = _number(question, "sroffset", 0, FURTHEST)
    found = store.texts.search(search)
    page = [{"ns": 0, "title": qid, "pageid": int(qid[1:])} for qid in found[first : first + limit]]
    said: dict[str, Any] = {"batchcomplete": ""}
    if len(found) > first + limit:
        said["continue"] = {"sroffset": first + limit, "continue": "-||"}
    return said | {"query": {"searchinfo": {"totalhits": len(found)}, "search": page}}


def _entities(store: Store, question: Question) -> dict[str, Any]:
    ids = [part for part in question.get("ids", "").split("|") if part]
    if not ids:
        raise Refused("param-missing", 'Either provide the item "ids" or pairs of "sites" and "titles"')
    if len(ids) > MOST_IDS:
        raise Refused("toomanyvalues", f'Too many values supplied for parameter "ids". The limit is {MOST_IDS}.')
    bad = next((qid for qid in ids if not (qid[:1] == "Q" and qid[1:].isdigit())), None)
    if bad is not None:
        raise Refused("no-such-entity", f'Could not find an entity with the ID "{bad[:40]}".')
    languages = question["languages"].split("|") if question.get("languages") else None
    props = frozenset(question.get("props", PROPS).split("|"))
    follow = question.get("redirects", "yes") == "yes"
    return {"entities": {qid: _entity(store, qid, languages, props, follow) for qid in ids}, "success": 1}


def _entity(store: Store, qid: str, languages: list[str] | None, props: frozenset[str], follow: bool) -> dict[str, Any]:
    """The entity that it was merged into stands under the number that was asked for, and says so."""
    found = store.entities.get(qid)
    if found is not None and found.merged_into:
        target = store.entities.get(found.merged_into) if follow else None
        if target is not None:
            return target.shown(languages, props) | {"redirects": {"from": qid, "to": target.qid}}
        found = None
    return {"id": qid, "missing": ""} if found is None else found.shown(languages, props)


def _given(question: Question, name: str) -> str:
    if not question.get(name):
        raise Refused("missingparam", f'The "{name}" parameter must be set.')
    return question[name]


def _number(question: Question, name: str, usual: int, most: int | None = None) -> int:
    said = question.get(name, str(usual))
    if not said.isdigit():
        raise Refused("badinteger", f'Invalid value "{said[:20]}" for integer parameter "{name}".')
    if most is not None and int(said) > most:
        raise Refused("outofrange", f'The value "{said[:20]}" for parameter "{name}" must be no more than {most}.')
    return int(said)
