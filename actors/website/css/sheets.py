"""What a page's own style sheets make of an element: hidden, a block or not, its letters in another case.

The cascade of CSS, on a screen of 1280 by 720, before anybody moves: importance, layers, specificity, order. Within
bounds that hostile sheets cannot move; what is beyond them hides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tinycss2

from actors.website.css.media import is_for_screens, is_supported
from actors.website.css.parsing import understood
from actors.website.css.selectors import Budget, Element, Selector

LONGEST_SHEET = 200_000
_MOST_RULES = 2_000
_MOST_COMPARISONS = 2_000_000
_DEEPEST = 4
_NAMES = ("display", "visibility", "content-visibility", "text-transform")
_UNLAYERED = 1_000_000
# Values that a browser does not know leave what was there before.
_ANYWHERE = "inherit initial unset revert"
_VALUES = {
    "display": """none block inline inline-block flex inline-flex grid inline-grid contents list-item flow-root table
        inline-table table-row table-cell table-caption table-row-group table-header-group table-footer-group
        table-column table-column-group ruby -webkit-box -webkit-flex""",
    "visibility": "visible hidden collapse",
    "content-visibility": "visible hidden auto",
    "text-transform": "none uppercase lowercase capitalize",
}
_KNOWN = {name: frozenset(f"{values} {_ANYWHERE}".split()) for name, values in _VALUES.items()}
# Important, of the element itself, layer, specificity, order.
Weight = tuple[bool, bool, int, int, int]
Declared = list[tuple[str, str, bool]]


@dataclass(frozen=True)
class _Rule:
    selector: Selector
    name: str
    value: str
    weight: Weight


class Styles:
    """The rules of all sheets of a page, found by what their selectors end with."""

    def __init__(self) -> None:
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        self._layers: dict[str, int] = {}
        self._count = 0
        self._left = LONGEST_SHEET
        self._budget = Budget(_MOST_COMPARISONS)

    @property
    def all_read(self) -> bool:
        """Whether no bound was met: what the rest hides is taken for shown."""
        return self._left >= 0 and self._count <= _MOST_RULES and self._budget.left >= 0

    def add(self, sheet: str, media: str = "") -> None:
        """Read one sheet; never raises."""
        if not any(name in sheet for name in ("display", "visibility", "text-transform", "DISPLAY", "VISIBILITY")):
            return
        self._left -= len(sheet)
        if self._left < 0 or not is_for_screens(tinycss2.parse_component_value_list(media)):
            return
        self._read(tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True), (), "", 0)

    def decide(self, element: Element) -> dict[str, str]:
        """The properties that the page sets for ``element``."""
        found: dict[str, tuple[Weight, str]] = {}
        keys = [element.tag, "*", "#" + element.attributes.get("id", ""), *("." + one for one in element.classes)]
        for rule in (rule for key in keys if key in self._rules for rule in self._rules[key]):
            if _outweighs(rule.weight, found.get(rule.name)) and rule.selector.fits(element, self._budget):
                found[rule.name] = (rule.weight, rule.value)
        for name, value, important in _declared_in(element.attributes.get("style", "")[:2000]):
            weight = (important, True, 0, 0, 0)
            if _outweighs(weight, found.get(name)):
                found[name] = (weight, value)
        return {name: value for name, (_, value) in found.items()}

    def _read(self, rules: Sequence[Any], around: Sequence[Selector], layer: str, depth: int) -> None:
        declared: Declared = []
        for rule in rules:
            if rule.type == "declaration":
                declared += _declared(rule)
            elif rule.type == "qualified-rule" and depth < _DEEPEST:
                selectors = understood(rule.prelude, around)
                if selectors:
                    inside = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
                    self._read(inside, selectors, layer, depth + 1)
            elif rule.type == "at-rule" and depth < _DEEPEST:
                self._at_rule(rule, around, layer, depth)
        self._keep(around, declared, layer)

    def _at_rule(self, rule: Any, around: Sequence[Selector], layer: str, depth: int) -> None:
        match rule.lower_at_keyword:
            case "media" if is_for_screens(rule.prelude):
                pass
            case "supports" if is_supported(rule.prelude):
                pass
            case "layer":
                names = [name.strip() for name in tinycss2.serialize(rule.prelude).split(",")]
                names = [f"{layer}.{name or len(self._layers)}" for name in names]
                for name in names:
                    self._layers.setdefault(name, len(self._layers) + 1)
                layer = names[0]
            case _:
                return
        if rule.content is not None:
            inside = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
            self._read(inside, around, layer, depth + 1)

    def _keep(self, selectors: Sequence[Selector], declared: Declared, layer: str) -> None:
        rank = self._layers[layer] if layer else _UNLAYERED
        for selector in selectors if declared else ():
            for name, value, important in declared:
                self._count += 1
                if self._count <= _MOST_RULES:
                    weight = (important, False, -rank if important else rank, selector.weight, self._count)
                    self._rules[selector.key].append(_Rule(selector, name, value, weight))


def _outweighs(weight: Weight, other: tuple[Weight, str] | None) -> bool:
    return other is None or weight >= other[0]


def _declared_in(block: str) -> Declared:
    if not block:
        return []
    parts = tinycss2.parse_declaration_list(block, skip_comments=True, skip_whitespace=True)
    return [one for part in parts if part.type == "declaration" for one in _declared(part)]


def _declared(declaration: Any) -> Declared:
    name = declaration.lower_name
    if name not in _NAMES:
        return []
    words = [token for token in declaration.value if token.type not in {"whitespace", "comment"}]
    value = words[0].lower_value if len(words) == 1 and words[0].type == "ident" else ""
    return [(name, value, declaration.important)] if value in _KNOWN[name] else []
