"""Which media queries hold in the window of a usual browser, and which conditions of ``@supports``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tinycss2

# Of a window, in pixels; one em is sixteen of them.
WIDTH, HEIGHT, EM = 1280.0, 720.0, 16.0
_TYPES = frozenset({"all", "screen"})
_NUMBERS = {"width": WIDTH, "height": HEIGHT, "device-width": WIDTH, "device-height": HEIGHT, "resolution": 1.0}
_WORDS = {
    "orientation": "landscape",
    "prefers-color-scheme": "light",
    "prefers-reduced-motion": "no-preference",
    "prefers-contrast": "no-preference",
    "hover": "hover",
    "any-hover": "hover",
    "pointer": "fine",
    "any-pointer": "fine",
    "scripting": "enabled",
    "display-mode": "browser",
    "update": "fast",
    "forced-colors": "none",
    "color": "8",
}
_LENGTH = re.compile(r"(-?[\d.]+)(px|em|rem|dppx|x|dpi)?")
_PLAIN = re.compile(r"(min-|max-)?([\w-]+)(?::(.+))?")
_RANGE = re.compile(r"(?:([\d.]+\w*)(<=?|>=?))?([a-z-]+)(?:(<=?|>=?|=)([\d.]+\w*))?")
_HOLDS = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "=": lambda one, other: one == other,
}


def is_for_screens(query: Sequence[Any]) -> bool:
    """Whether one of the queries holds; none at all holds always."""
    text = str(tinycss2.serialize(query)).lower()
    queries = [" ".join(one.split()) for one in re.sub(r"/\*.*?\*/", " ", text)[:1000].split(",")]
    return not text.strip() or any(_holds(one) for one in queries)


def is_supported(condition: Sequence[Any]) -> bool:
    """A browser of today supports nearly all that is asked for."""
    return not str(tinycss2.serialize(condition)).strip().lower().startswith("not")


def _holds(query: str) -> bool:
    turned = query.startswith("not ")
    known = [_part(part.strip("() ")) for part in query.removeprefix("not ").removeprefix("only ").split(" and ")]
    return all(known) is not turned


def _part(text: str) -> bool:
    """One type or feature; what is not known does not hold."""
    plain = text.replace(" ", "")
    if plain in _TYPES:
        return True
    if found := _PLAIN.fullmatch(plain):
        bound, name, value = found.groups()
        if name in _WORDS and not bound:
            return value == _WORDS[name] if value else _WORDS[name] != "none"
        if name in _NUMBERS:
            return _compared(_NUMBERS[name], {"min-": ">=", "max-": "<="}.get(bound or "", "="), value)
    if found := _RANGE.fullmatch(plain):
        low, first, name, second, high = found.groups()
        if name in _NUMBERS and (first or second):
            turned = (first or "").translate(str.maketrans("<>", "><"))
            lower = not first or _compared(_NUMBERS[name], turned, low)
            return lower and (not second or _compared(_NUMBERS[name], second, high))
    return False


def _compared(own: float, sign: str, value: str | None) -> bool:
    found = _LENGTH.fullmatch(value or "")
    if not found:
        return False
    try:
        number = float(found.group(1))
    except ValueError:
        return False
    unit = {"em": EM, "rem": EM, "dpi": 1 / 96}.get(found.group(2) or "", 1.0)
    return bool(_HOLDS[sign](own, number * unit))
