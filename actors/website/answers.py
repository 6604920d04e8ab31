"""Find a model's answer in whatever it is wrapped in: fences, prose, thinking, tags, lists, other objects."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from actors.website.lenient_json import Unreadable, read_value
from actors.website.storable import clean, storable

LONGEST = 200_000
_MOST_TRIES = 60
_DEEPEST_WRAPPING = 6
_THINKING = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|plan"
_THOUGHT = re.compile(rf"<({_THINKING})\b[^<>]{{0,200}}>", re.IGNORECASE)
_THOUGHT_END = re.compile(rf"</(?:{_THINKING})\s*>", re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[\w/ -]{1,40}\|>|</?s>|\[/?(?:INST|TOOL_CALLS)\]")
_LAST_CHANNEL = re.compile(r"<\|channel\|>\s*final\b")
_FINAL = re.compile(
    r"\b(?:final(?:ly|e)?|corrected|correction|revised|updated|improved|actual|instead|better|on reflection|answer"
    r"|endgültig\w*|korrigiert\w*|corrigée?|corregid[oa])\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"\s*(?:\.{2,}|…|<[^<>]{0,80}>|\[[^\[\]]{0,80}\]|(?:text|string|str|code|number|\?+))\s*", re.I
)
Model = TypeVar("Model", bound=BaseModel)


class Unusable(ValueError):  # a judgement on an answer, not a failure of the program
    """The answer does not fit; the message lists the problems in words that the model can act on."""


@dataclass(frozen=True)
class _Found:
    """An object, and where in the text it stood."""

    value: dict[str, Any]
    start: int
    end: int


def read_answer(answer: str, schema: type[Model], *, cut: bool = False) -> Model:
    """The one answer in ``answer`` that fits ``schema``; raises Unusable. Never guesses between two.

    ``cut``: the model had no tokens left. Then brackets that are missing at the end are not forgotten ones.
    """
    if len(answer) > LONGEST:
        raise Unusable(f"- it is longer than {LONGEST} characters")
    text = _bare(answer)
    found, why = _objects(text, schema, cut)
    likely = [one for one in found if _is_likely(one.value, schema)] or found
    if not likely:
        raise Unusable(f"- it is not valid JSON: {why}")
    last = likely[-1]
    fitting = _validated(last.value, schema)
    others = [one for one in likely[:-1] if _fits(one.value, schema) not in (None, fitting)]
    if others and not _FINAL.search(text[others[-1].end : last.start]):
        raise Unusable("- it holds several answers that disagree: send exactly one JSON object")
    return fitting


def _bare(answer: str) -> str:
    """The text without thinking and special tokens. Thinking that never ends leaves nothing."""
    text = clean(answer).replace("\ufeff", "").strip()
    final = list(_LAST_CHANNEL.finditer(text))
    if final:
        text = text[final[-1].end() :]
    text = _without_thoughts(text)
    text = _SPECIAL.sub(" ", text)
    if "&quot;" in text and '"' not in text:
        text = html.unescape(text)
    if re.search(r"[{\[]\s*(?:\\[nrt]\s*)*\\\"", text):
        text = _unescaped_once(text)
    return text


def _without_thoughts(text: str) -> str:
    ends = list(_THOUGHT_END.finditer(text))
    first = _THOUGHT.search(text)
    if ends and (not first or ends[0].start() < first.start()):
        # opened by the prompt's template, which is not part of the answer
        text = text[ends[0].end() :]
    kept: list[str] = []
    at = 0
    while opened := _THOUGHT.search(text, at):
        if "{" in text[: opened.start()] and '"' in text[: opened.start()]:
            # within or after the answer, where a tag is text
            break
        kept.append(text[at : opened.start()])
        ended = _THOUGHT_END.search(text, opened.end())
        if not ended:
            return "".join(kept)
        at = ended.end()
    return "".join(kept) + text[at:]


def _unescaped_once(text: str) -> str:
    """JSON that was encoded as a text a second time, and lost its outer quotes."""
    begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=0)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    inner = text[begin:end]
    if text[:begin].strip().endswith('"') or re.search(r'(?<!\\)"', inner):
        return text
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        return text


def _objects(text: str, schema: type[BaseModel], cut: bool) -> tuple[list[_Found], str]:
    """Every object in ``text`` that may be the answer, unwrapped; and why the first failed, if none was read."""
    found: list[_Found] = []
    why = "there is no JSON object in it"
    at, tries, left = 0, 0, 4 * len(text) + 1000
    starts = re.compile(r'["{\[]' if text.startswith('"') else r"[{\[]")
    while tries < _MOST_TRIES and left > 0:
        opening = starts.search(text, at)
        if not opening:
            break
        tries += 1
        try:
            value, end = read_value(text, opening.start(), cut=cut)
        except (Unreadable, RecursionError) as error:
            # what was cut off or spoiled is the whole answer, unless more follows
            if tries == 1:
                why = str(error)
            left -= len(text) - opening.start()
            at = opening.end()
            continue
        unwrapped = list(_unwrapped(value, schema, 0))
        found += [_Found(one, opening.start(), end) for one in unwrapped]
        at = max(end, opening.end())
    return found, why


def _unwrapped(value: Any, schema: type[BaseModel], depth: int) -> Iterator[dict[str, Any]]:
    """The objects inside wrappings; an object with the schema's own keys is not a wrapping."""
    if depth > _DEEPEST_WRAPPING:
        return
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            inner, _ = read_value(value.strip(), 0)
        except (Unreadable, RecursionError):
            return
        yield from _unwrapped(inner, schema, depth + 1)
    elif isinstance(value, list):
        for item in value[:20]:
            if isinstance(item, dict | list):
                yield from _unwrapped(item, schema, depth + 1)
    elif isinstance(value, dict):
        named = _with_known_keys(value, schema)
        inner = [one for item in value.values() for one in _unwrapped(item, schema, depth + 1)]
        if _share(named, schema) == 0 and any(_share(one, schema) for one in inner):
            yield from (one for one in inner if _share(one, schema))
        else:
            yield storable(named)


def _with_known_keys(value: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """Keys that differ from the schema's only in case, spaces and signs are the schema's."""
    known = {_plain(name): name for name in schema.model_fields}
    named: dict[str, Any] = {}
    for key, item in value.items():
        named.setdefault(known.get(_plain(key), key), item)
    return named


def _plain(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).lower()


def _share(value: dict[str, Any], schema: type[BaseModel]) -> int:
    return sum(name in value for name in schema.model_fields)


def _is_likely(value: dict[str, Any], schema: type[BaseModel]) -> bool:
    """Whether this is meant as an answer: it has the keys, and is not the form that the prompt showed."""
    if _share(value, schema) * 2 < len(schema.model_fields):
        return False
    texts = [item for item in _texts(value) if item.strip()]
    return not texts or not all(_PLACEHOLDER.fullmatch(text) for text in texts)


def _texts(value: dict[str, Any]) -> Iterator[str]:
    for item in value.values():
        for one in item if isinstance(item, list) else [item]:
            if isinstance(one, str):
                yield one


def _fits(value: dict[str, Any], schema: type[Model]) -> Model | None:
    try:
        return schema.model_validate(value)
    except ValidationError:
        return None


def _validated(value: dict[str, Any], schema: type[Model]) -> Model:
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise Unusable("\n".join(_problems(error))) from None


def _problems(error: ValidationError) -> list[str]:
    found = error.errors(include_url=False, include_input=False)[:10]
    return [f'- "{".".join(map(str, problem["loc"]))}": {problem["msg"]}' for problem in found]
