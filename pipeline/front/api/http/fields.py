"""Kinds of input, each with its bounds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints

from pipeline.declare.options import LONGEST_TAG
from pipeline.declare.registry import BadBody, read_body
from pipeline.front.api.http.problem import invalid

Kind = TypeVar("Kind")
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def _storable(value: str) -> str:
    if "\x00" in value:
        raise ValueError("a NUL character cannot be stored")
    return value


def is_json(value: Kind) -> Kind:
    """Refuses what JSON cannot say, and Python's reader lets through."""
    if isinstance(value, bytes):
        raise ValueError("send JSON, with the content type application/json")
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("NaN and Infinity are not valid JSON") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def is_event(value: str) -> str:
    """The name of an event."""
    if not value.isprintable():
        raise ValueError("the name of an event has printable characters only")
    return value


def _is_text(value: Any) -> Any:
    if value is not None and not isinstance(value, str):
        raise ValueError("write a date and time such as 2030-01-31T12:00:00Z")
    return value


def _near(value: datetime) -> datetime:
    if not EARLIEST <= value < LATEST:
        raise ValueError("must lie between the years 2000 and 2200")
    return value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=60)]
Text = Annotated[str, AfterValidator(_storable), Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")]
"""The type of a field: a text of 1 to 1,000 characters that PostgreSQL can store.

>>> class Parcel(BaseModel):
...     item: Text
>>> Parcel(item="a lamp").item
'a lamp'
"""
Body = Annotated[dict[str, Any], AfterValidator(is_json)]
Moment = Annotated[AwareDatetime, AfterValidator(_near), BeforeValidator(_is_text)]
Seconds = Annotated[float, Field(gt=0, lt=1e9, strict=True, description="seconds")]
Tag = Annotated[str, AfterValidator(_storable), Field(min_length=1, max_length=LONGEST_TAG)]
Priority = Annotated[int, Field(ge=0, le=9, strict=True, description="9 goes first")]
JobId = Annotated[UUID, Path(description="a job's id")]


def typed(workflow: str, body: dict[str, Any]) -> Any:
    """The body as its workflow's type. 422 with each wrong field, if this process has the type declared."""
    try:
        return read_body(workflow, body)
    except BadBody as error:
        # The body is a field of the request's body. A mistake of the whole has no field.
        named = [(filter(None, field.split(".")), said) for field, said in error.mistakes]
        raise invalid([{"loc": ("body", "body", *way), "msg": said} for way, said in named]) from None
