"""What a page's own style sheets hide: ``display: none`` and ``visibility: hidden``, for plain selectors.

Selectors of names, classes, ids and attributes are understood, also one inside another. What depends on the window, the
pointer or neighbours is not, and hides nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tinycss2

LONGEST_SHEET = 100_000
_MOST_RULES = 500
_COMPOUND = re.compile(r"(?:\*|[\w-]+)?(?:[.#][\w-]+|\[[\w-]+(?:=(?:\"[^\"]*\"|'[^']*'|[\w-]+))?\])*+")
_PART = re.compile(r"([.#]?)([\w-]+)|\[([\w-]+)(?:=[\"']?([^\"'\]]*)[\"']?)?\]|\*")
_SCREENS = frozenset(
    {"", "all", "screen", "only screen", "screen, print", "print, screen", "screen,print", "all, screen"}
)
Weight = tuple[bool, int, int]


@dataclass(frozen=True)
class Element:
    """What a selector may ask for."""

    tag: str
    attributes: Mapping[str, str]
    classes: frozenset[str]

    @classmethod
    def of(cls, tag: str, attributes: Mapping[str, str]) -> Element:
        """An element with its classes split."""
        return cls(tag, attributes, frozenset(attributes.get("class", "")[:2000].split()))


@dataclass(frozen=True)
class _Compound:
    tag: str
    ids: frozenset[str]
    classes: frozenset[str]
    attributes: tuple[tuple[str, str | None], ...]

    def fits(self, element: Element) -> bool:
        given = element.attributes
        return (
            (not self.tag or self.tag == element.tag)
            and self.classes <= element.classes
            and all(given.get("id") == one for one in self.ids)
            and all(name in given and (value is None or given[name] == value) for name, value in self.attributes)
        )


@dataclass(frozen=True)
class _Rule:
    path: tuple[_Compound, ...]
    name: str
    value: str
    weight: Weight

    def fits(self, element: Element, ancestors: Sequence[Element]) -> bool:
        if not self.path[-1].fits(element):
            return False
        wanted = list(self.path[:-1])
        for above in reversed(ancestors):
            if not wanted:
                return True
            if wanted[-1].fits(above):
                wanted.pop()
        return not wanted


class Styles:
    """The rules of all sheets of a page, found by what their selectors end with."""

    def __init__(self) -> None:
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        self._count = 0
        self._left = LONGEST_SHEET

    def add(self, sheet: str, media: str = "") -> None:
        """Read one sheet; never raises."""
        if media.strip().lower() not in _SCREENS or ("none" not in sheet and "hidden" not in sheet):
            return
        self._left -= len(sheet)
        if self._left >= 0:
            self._read(tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True), 0)

    def decide(self, element: Element, ancestors: Sequence[Element]) -> dict[str, str]:
        """``display`` and ``visibility`` as far as the page sets them for ``element``."""
        found: dict[str, tuple[Weight, str]] = {}
        keys = [element.tag, "*", "#" + element.attributes.get("id", ""), *("." + one for one in element.classes)]
        for rule in (rule for key in keys if key in self._rules for rule in self._rules[key]):
            if rule.weight >= found.get(rule.name, (rule.weight, ""))[0] and rule.fits(element, ancestors):
                found[rule.name] = (rule.weight, rule.value)
        for name, value, important in _declared(element.attributes.get("style", "")[:2000]):
            weight = (important, 1_000_000, 0)
            if weight >= found.get(name, (weight, ""))[0]:
                found[name] = (weight, value)
        return {name: value for name, (_, value) in found.items()}

    def _read(self, rules: Sequence[Any], depth: int) -> None:
        for rule in rules:
            if rule.type == "qualified-rule":
                self._keep(tinycss2.serialize(rule.prelude), tinycss2.serialize(rule.content))
            elif rule.type == "at-rule" and depth < 3 and _is_for_screens(rule):
                self._read(tinycss2.parse_rule_list(rule.content, True, True), depth + 1)

    def _keep(self, selectors: str, block: str) -> None:
        declared = _declared(block)
        for selector in selectors[:2000].split(",") if declared else []:
            path = _path(selector)
            if path and self._count < _MOST_RULES:
                for name, value, important in declared:
                    self._count += 1
                    rule = _Rule(path, name, value, (important, _specificity(path), self._count))
                    self._rules[_key(path[-1])].append(rule)


def _is_for_screens(rule: Any) -> bool:
    if rule.lower_at_keyword != "media" or not rule.content:
        return False
    return str(tinycss2.serialize(rule.prelude)).strip().lower() in _SCREENS


def _declared(block: str) -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    if not block:
        return found
    for part in block.lower().split(";"):
        name, _, value = part.partition(":")
        important = "!" in value
        if name.strip() in {"display", "visibility"}:
            found.append((name.strip(), value.partition("!")[0].strip(), important))
    return found


def _path(selector: str) -> tuple[_Compound, ...] | None:
    compounds = selector.replace(">", " ").split()
    if not compounds or len(compounds) > 6 or not all(_COMPOUND.fullmatch(one) for one in compounds):
        return None
    return tuple(_compound(one) for one in compounds)


def _compound(text: str) -> _Compound:
    tag, ids, classes = "", set(), set()
    attributes: list[tuple[str, str | None]] = []
    for part in _PART.finditer(text):
        kind, name, attribute, value = part.groups()
        if attribute:
            attributes.append((attribute.lower(), value))
        elif kind == "#":
            ids.add(name)
        elif kind == ".":
            classes.add(name)
        elif name:
            tag = name.lower()
    return _Compound(tag, frozenset(ids), frozenset(classes), tuple(attributes))


def _specificity(path: Sequence[_Compound]) -> int:
    return sum(10_000 * len(c.ids) + 100 * (len(c.classes) + len(c.attributes)) + bool(c.tag) for c in path)


def _key(last: _Compound) -> str:
    if last.ids:
        return "#" + next(iter(last.ids))
    if last.classes:
        return "." + next(iter(last.classes))
    return last.tag or "*"
