"""Spoiling what is good: of values that JSON can hold, and of bytes."""

from __future__ import annotations

import copy
import random
from typing import Any

NASTY: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
    0.5,
    -0.0,
    1e308,
    5e-324,
    "",
    " ",
    "0",
    "1",
    "null",
    "\0",
    "a\0b",
    "\n",
    "\u202e",
    "\ufeff",
    "💥",
    "é" * 300,
    "x" * 5000,
    "%s%n{0}{{",
    "../../etc/passwd",
    "'; DROP TABLE pipeline.jobs; --",
    "<script>alert(1)</script>",
    "${jndi:ldap://x}",
    "NaN",
    "Infinity",
    "1e999",
    [],
    [[]],
    [None],
    {},
    {"": ""},
    {"a": {"b": [1, {"c": None}]}},
    ["x"] * 300,
    "2026-01-02",
    "2026-W01-1T00:00:00+00:00",
    "20260102T030405+0000",
    "2026-01-02\x0003:04:05+00:00",
    "2026-01-02x03:04:05+00:00",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
    "2026-01-02T03:04:05+00:00:30",
    "2026-01-02T24:00:00+00:00",
    "2026-01-02T03:04:05Z",
    "infinity",
    "now",
    "epoch",
    "00000000-0000-0000-0000-000000000000",
    "{019b0000-0000-7000-8000-000000000001}",
    "urn:uuid:019b0000-0000-7000-8000-000000000001",
    "019b0000000070008000000000000001",
    "f" * 32,
    "0" * 16,
]
PIECES = [
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[" * 2000,
    b'"',
    b"\\u0000",
    b"\\ud800",
    b"1e999",
    b"\r\n",
    b"<!--",
    b"]]>",
    b"<a href=",
    b"%PDF-1.7",
    b"%%EOF",
    b"endobj",
    b"stream",
    b";" * 50,
    b'"""',
    b"\xc3",
    b"<" * 500,
    b"&#x0;",
    b"&" * 100,
]


def value(dice: random.Random) -> Any:
    """A value nobody expects."""
    return copy.deepcopy(dice.choice(NASTY))


def spoil(good: Any, dice: random.Random) -> Any:
    """A copy that differs in one to three places: another value, a missing or a foreign member, a wrapper."""
    spoiled = copy.deepcopy(good)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        spoiled = _once(spoiled, dice)
    return spoiled


def _once(found: Any, dice: random.Random) -> Any:
    if isinstance(found, dict) and found and dice.random() < 0.85:
        key = dice.choice(list(found))
        match dice.randrange(8):
            case 0:
                del found[key]
            case 1:
                found[str(value(dice))[:50]] = value(dice)
            case _:
                found[key] = _once(found[key], dice)
        return found
    if isinstance(found, list) and found and dice.random() < 0.85:
        place = dice.randrange(len(found))
        match dice.randrange(6):
            case 0:
                del found[place]
            case 1:
                found.insert(place, value(dice))
            case _:
                found[place] = _once(found[place], dice)
        return found
    return _other(found, dice)


def _other(found: Any, dice: random.Random) -> Any:
    match dice.randrange(6):
        case 0:
            return [found]
        case 1:
            return {"value": found}
        case 2:
            return str(found)
        case 3 if isinstance(found, str):
            return spoil_bytes(found.encode(), dice).decode("utf-8", "replace")
        case _:
            return value(dice)


def spoil_bytes(good: bytes, dice: random.Random) -> bytes:
    """A few changes: a bit turned, a piece cut out, doubled or put in, an end missing."""
    spoiled = bytearray(good)
    for _ in range(dice.choice((1, 1, 2, 5))):
        place = dice.randrange(len(spoiled) + 1)
        length = dice.choice((1, 2, 10, 100))
        match dice.randrange(5):
            case 0 if place < len(spoiled):
                spoiled[place] ^= 1 << dice.randrange(8)
            case 1:
                del spoiled[place : place + length]
            case 2:
                spoiled[place:place] = spoiled[place : place + length]
            case 3:
                spoiled[place:place] = dice.choice(PIECES)
            case _ if dice.random() < 0.3:
                del spoiled[place:]
    return bytes(spoiled)
