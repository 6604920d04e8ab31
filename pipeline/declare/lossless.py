"""JSON that says everything of the value that it was made of, and that PostgreSQL can store."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import orjson

NO_NUMBER = "NaN and Infinity are not valid JSON"
# What pydantic writes for a secret.
ASTERISKS = b'"**********"'
# Not the six characters themselves, whose backslash is escaped.
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check(encoded: bytes, value: Callable[[], object]) -> None:
    """ValueError with a sentence if an encoder dropped something without a word.

    ``value``: what was encoded, asked for only where its JSON looks like that.
    """
    # Encoders write null for a number that JSON does not have.
    if b"null" in encoded and _holds(value(), _is_no_number):
        raise ValueError(NO_NUMBER)
    # A model may ask for constants, which no other reader of JSON understands.
    if (b"NaN" in encoded or b"Infinity" in encoded) and not _is_json(encoded):
        raise ValueError(NO_NUMBER)
    if ASTERISKS in encoded and _holds(value(), _is_secret):
        raise ValueError("a secret would arrive as asterisks: send the name under which the phase finds it")


def without_nul(encoded: bytes) -> bytes:
    """The same. ValueError for the one character that a text may have in JSON and not in PostgreSQL's jsonb."""
    if b"\\u0000" in encoded and NUL.search(encoded):
        raise ValueError("PostgreSQL has no NUL character (\\x00) in its texts")
    return encoded


def _is_json(encoded: bytes) -> bool:
    try:
        orjson.loads(encoded)
    except orjson.JSONDecodeError:
        return False
    return True


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_secret(value: object) -> bool:
    return hasattr(value, "get_secret_value")


def _holds(value: Any, wrong: Callable[[object], bool]) -> bool:
    """Whether anything in it is wrong."""
    if wrong(value):
        return True
    if callable(dump := getattr(value, "model_dump", None)):
        return _holds(dump(), wrong)
    if isinstance(value, Mapping):
        return any(_holds(one, wrong) for one in value.values())
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds(getattr(value, field.name, None), wrong) for field in fields(value))
    return isinstance(value, list | tuple | set | frozenset) and any(_holds(one, wrong) for one in value)
