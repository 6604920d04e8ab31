"""CSS selectors: what a browser would find, as far as it can be told while a page is read from its beginning.

Names, classes, ids, attributes, neighbours, places among brothers counted from the first, ``:not``, ``:is``, nesting.
What depends on the pointer matches nothing. What is not understood makes its rule void.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tinycss2
from tinycss2 import nth

from actors.website.css.selectors import Budget, Compound, Element, Selector, Test

_MOST_COMPOUNDS = 8
_DEEPEST = 3
# True of nobody before a hand or a key has moved.
_POINTED = "hover focus active visited target focus-within focus-visible fullscreen popover-open"
_NEVER = frozenset(_POINTED.split())
_LISTS = frozenset({"is", "where", "matches", "-webkit-any", "-moz-any"})
_NTH = frozenset({"nth-child", "nth-of-type"})


class NotUnderstood(ValueError):
    """A selector, or a part of it, that is not known here."""


def parse(prelude: Sequence[Any], around: Sequence[Selector] = (), depth: int = 0) -> list[Selector]:
    """The selectors of a rule, which may be nested in one with the selectors ``around``; raises NotUnderstood."""
    found: list[Selector] = []
    for part in _split(prelude):
        selector = _Parser(part, around, depth).selector()
        found.append(selector)
    if not found:
        raise NotUnderstood("nothing is selected")
    return found


def _split(tokens: Sequence[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    for token in tokens:
        if token.type == "comment":
            continue
        if token == ",":  # noqa: S105  a sign
            yield part
            part = []
        else:
            part.append(token)
    yield part


class _Parser:
    """One selector, token by token."""

    def __init__(self, tokens: Sequence[Any], around: Sequence[Selector], depth: int) -> None:
        self._tokens = list(tokens)
        while self._tokens and self._tokens[0].type == "whitespace":
            self._tokens.pop(0)
        self._around, self._depth = around, depth
        self._done: list[Compound] = []
        self._combinator = " "
        self._begin()

    def _begin(self) -> None:
        self._tag, self._names, self._ids = "", set[str](), set[str]()
        self._tests: list[Test] = []
        self._weight = 0
        self._empty = True

    def selector(self) -> Selector:
        if self._around and not any(token == "&" for token in self._tokens):  # noqa: S105  a sign
            self._parent()
            self._end(" ")
        while self._tokens:
            self._take(self._tokens.pop(0))
        self._close()
        if not self._done or len(self._done) > _MOST_COMPOUNDS:
            raise NotUnderstood("too long, or empty")
        return Selector(tuple(self._done))

    def _take(self, token: Any) -> None:
        match token.type:
            case "whitespace":
                self._end(" ")
            case "ident":
                self._tag, self._weight = token.lower_value, self._weight + 1
            case "hash":
                self._ids.add(token.value)
                self._weight += 10_000
            case "[] block":
                self._tests.append(_attribute([one for one in token.content if one.type != "whitespace"]))
                self._weight += 100
            case "literal":
                self._sign(token.value)
                return
            case _:
                raise NotUnderstood(token.type)
        self._empty = self._empty and token.type == "whitespace"

    def _sign(self, sign: str) -> None:
        if sign in {">", "+", "~"}:
            self._end(sign)
            return
        self._empty = False
        match sign:
            case "*":
                return
            case "&" if self._around:
                self._parent()
            case "." if self._tokens and self._tokens[0].type == "ident":
                self._names.add(self._tokens.pop(0).value)
                self._weight += 100
            case ":" if self._tokens and self._tokens[0].type in {"ident", "function"}:
                self._pseudo(self._tokens.pop(0))
            case _:
                raise NotUnderstood(sign)

    def _parent(self) -> None:
        self._any_of(self._around)
        self._empty = False

    def _any_of(self, selectors: Sequence[Selector], *, without_weight: bool = False) -> None:
        self._tests.append(lambda element, budget: any(one.fits(element, budget) for one in selectors))
        self._weight += 0 if without_weight else max(one.weight for one in selectors)

    def _pseudo(self, token: Any) -> None:
        name = token.lower_value if token.type == "ident" else token.lower_name
        if token.type == "function" and (name in _LISTS or name == "not"):
            if self._depth >= _DEEPEST:
                raise NotUnderstood("too deep")
            inner = parse(token.arguments, self._around if _has_parent(token.arguments) else (), self._depth + 1)
            if name == "not":
                self._tests.append(lambda element, budget: not any(one.fits(element, budget) for one in inner))
                self._weight += max(one.weight for one in inner)
            else:
                self._any_of(inner, without_weight=name == "where")
            return
        self._tests.append(_simple(name, token))
        self._weight += 100

    def _end(self, combinator: str) -> None:
        """White space may stand around another combinator."""
        self._close()
        if combinator != " " and self._combinator != " ":
            raise NotUnderstood("two combinators")
        self._combinator = combinator if combinator != " " else self._combinator

    def _close(self) -> None:
        if self._empty:
            return
        names, ids = frozenset(self._names), frozenset(self._ids)
        self._done.append(Compound(self._combinator, self._tag, names, ids, tuple(self._tests), self._weight))
        self._combinator = " "
        self._begin()


def _has_parent(tokens: Sequence[Any]) -> bool:
    return any(token == "&" for token in tokens)  # noqa: S105  a sign


def _simple(name: str, token: Any) -> Test:
    """A pseudo-class without selectors in it."""
    if name in _NEVER:
        return lambda _element, _budget: False
    if token.type == "function" and name in _NTH:
        steps = nth.parse_nth(token.arguments)
        if steps is None:
            raise NotUnderstood(name)
        return lambda element, _budget: _is_nth(element.place if name == "nth-child" else element.place_of_type, *steps)
    match name:
        case "first-child":
            return lambda element, _budget: element.place == 1
        case "first-of-type":
            return lambda element, _budget: element.place_of_type == 1
        case "root":
            return lambda element, _budget: element.parent is None
        case "link" | "any-link":
            return lambda element, _budget: element.tag == "a" and "href" in element.attributes
        case "checked":
            return lambda element, _budget: bool({"checked", "selected"} & element.attributes.keys())
        case "disabled" | "required" | "open":
            return lambda element, _budget: name in element.attributes
        case "enabled":
            return lambda element, _budget: element.tag in _CONTROLS and "disabled" not in element.attributes
    raise NotUnderstood(name)


_CONTROLS = frozenset({"button", "input", "select", "textarea", "option", "optgroup", "fieldset"})


def _is_nth(place: int, step: int, first: int) -> bool:
    return place == first if step == 0 else (place - first) % step == 0 and (place - first) // step >= 0


def _attribute(tokens: Sequence[Any]) -> Test:
    """``[name]``, ``[name="value"]``, with ``^= $= *= ~= |=`` and the flag for any case."""
    if not tokens or tokens[0].type != "ident":
        raise NotUnderstood("an attribute without a name")
    name, rest = tokens[0].lower_value, list(tokens[1:])
    if not rest:
        return lambda element, _budget: name in element.attributes
    any_case = len(rest) == 3 and rest[2].type == "ident" and rest[2].lower_value == "i"
    if rest[0].type != "literal" or len(rest) != 2 + any_case or rest[1].type not in {"ident", "string"}:
        raise NotUnderstood("an attribute's value")
    wanted, holds = rest[1].value, _OPERATORS.get(rest[0].value)
    if holds is None:
        raise NotUnderstood(rest[0].value)
    any_case = any_case or name in _ANY_CASE
    wanted = wanted.lower() if any_case else wanted

    def test(element: Element, _budget: Budget) -> bool:
        given = element.attributes.get(name)
        return given is not None and holds(given.lower() if any_case else given, wanted)

    return test


# Values of HTML whose case never matters.
_ANY_CASE = frozenset({"type", "lang", "dir", "rel", "media", "method", "align", "hidden"})
_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda given, wanted: given == wanted,
    "^=": lambda given, wanted: bool(wanted) and given.startswith(wanted),
    "$=": lambda given, wanted: bool(wanted) and given.endswith(wanted),
    "*=": lambda given, wanted: bool(wanted) and wanted in given,
    "~=": lambda given, wanted: bool(wanted) and wanted in given.split(),
    "|=": lambda given, wanted: given == wanted or given.startswith(wanted + "-"),
}


def understood(prelude: Sequence[Any], around: Sequence[Selector] = ()) -> list[Selector]:
    """As ``parse``, but what is not understood selects nothing: one part that a browser does not know voids all."""
    try:
        return parse(prelude, around)
    except NotUnderstood:
        return []


def parse_text(text: str) -> list[Selector]:
    """For tests."""
    return understood(tinycss2.parse_component_value_list(text))
