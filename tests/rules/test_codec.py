"""Values as JSON and back, by the annotation that the code gives."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from threading import Thread
from typing import Any, NotRequired
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, SecretStr, field_serializer
from typing_extensions import TypedDict

from pipeline import Done
from pipeline.declare import lossless
from pipeline.declare.codec import DoesNotFit, codec_of, returned
from pipeline.declare.job import PLAIN, encode


class Colour(Enum):
    RED = "red"


class Page(BaseModel):
    url: str
    price: Decimal = Decimal("0.10")
    at: datetime = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    colour: Colour = Colour.RED


@dataclass
class Row:
    id: UUID
    day: date


class Order(TypedDict):
    number: int
    note: NotRequired[str]


VALUES: list[tuple[Any, Any]] = [
    (Page, Page(url="http://example.org", price=Decimal("1.10"))),
    (list[Page], [Page(url="a"), Page(url="b")]),
    (Row, Row(UUID(int=7), date(2026, 11, 18))),
    (Order, {"number": 3, "note": "quick"}),
    (Decimal, Decimal("12345678901234567890.10")),
    (datetime, datetime(2026, 11, 18, 12, tzinfo=UTC)),
    (timedelta, timedelta(seconds=90)),
    (UUID, UUID(int=1)),
    (Colour, Colour.RED),
    (dict[UUID, Decimal], {UUID(int=2): Decimal("0.1")}),
    (tuple[int, str], (1, "a")),
    (set[int], {1, 2}),
    (Page | None, None),
    (bytes, b"text"),
    (int, 2**70),
]


@pytest.mark.parametrize(("annotation", "value"), VALUES)
def test_a_value_comes_back_as_what_it_was(annotation: Any, value: object) -> None:
    """Of the same type, whatever JSON lacks."""
    codec = codec_of(annotation)
    assert codec.decode(codec.encode(value)) == value
    assert type(codec.decode(codec.encode(value))) is type(value)


# Before 1972 some zones were seconds apart from a whole minute, which no text says.
MOMENTS = st.datetimes(min_value=datetime(1973, 1, 1), timezones=st.timezones())


@given(st.decimals(allow_nan=False, allow_infinity=False), MOMENTS, st.uuids())
def test_no_digit_and_no_moment_changes_on_the_way(price: Decimal, at: datetime, id: UUID) -> None:  # noqa: A002
    """Whatever the amount, the moment and its zone. (Python finds no two zones equal in an hour that comes twice.)"""
    page = Page(url=str(id), price=price, at=at)
    back = codec_of(Page).decode(codec_of(Page).encode(page))
    assert (back.price, back.at.astimezone(UTC), back.url) == (price, at.astimezone(UTC), str(id))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_json_has_no_number_for_is_refused(value: float) -> None:
    """In a model, in a list, and as plain values."""
    with pytest.raises(ValueError, match="NaN and Infinity are not valid JSON"):
        codec_of(list[float]).encode([1.5, value])
    with pytest.raises(ValueError, match="NaN and Infinity are not valid JSON"):
        codec_of(dict[str, float | None]).encode({"a": None, "b": value})
    with pytest.raises(ValueError, match="NaN and Infinity are not valid JSON"):
        PLAIN.encode({"a": [value]})
    with pytest.raises(ValueError, match="NaN and Infinity"):
        PLAIN.encode(Decimal(value))
    with pytest.raises(ValueError, match="finite"):
        codec_of(Decimal).encode(Decimal(value))


class Reading(BaseModel):
    value: float | None = None


class Constants(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    value: float


@dataclass
class Measure:
    value: float


@pytest.mark.parametrize("value", [math.nan, -math.inf])
@pytest.mark.parametrize("annotation", [Reading, Constants, Measure, list[Constants], set[float | None]])
def test_no_kind_of_value_hides_what_json_has_no_number_for(annotation: Any, value: float) -> None:
    """Not as null, and not as a word that PostgreSQL refuses: a phase would run three times for that."""
    made: Any = {value} if annotation == set[float | None] else [Constants(value=value)]
    if isinstance(annotation, type) and issubclass(annotation, Reading | Constants | Measure):
        made = annotation(value=value)
    with pytest.raises(ValueError, match="NaN and Infinity are not valid JSON"):
        codec_of(annotation).encode(made)
    if not isinstance(made, set):
        with pytest.raises(ValueError, match="NaN and Infinity are not valid JSON"):
            PLAIN.encode({"a": made})


def test_texts_that_look_like_what_is_refused_are_none() -> None:
    """NaN, asterisks, and the six characters that JSON says NUL with."""
    value = {"a": "NaN", "b": "**********", "c": "\\u0000", "d": None}
    assert PLAIN.decode(PLAIN.encode(value)) == value
    lossless.without_nul(PLAIN.encode(value))
    codec = codec_of(dict[str, str | None])
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize("text", ["\0", "a\\\0", "\\\\\0"])
def test_a_nul_character_is_refused_before_postgresql_would(text: str) -> None:
    """Whose error would end the caller's transaction, or cost a phase its three attempts."""
    with pytest.raises(ValueError, match="NUL character"):
        lossless.without_nul(PLAIN.encode({"a": text}))


class Login(BaseModel):
    user: str
    password: SecretStr


class Spelled(Login):
    """Its author has said how it travels."""

    @field_serializer("password", when_used="json")
    def spell(self, value: SecretStr) -> str:
        return value.get_secret_value()


def test_a_secret_does_not_become_asterisks_without_a_word() -> None:
    """Pydantic writes them for it, and reads them as a secret."""
    login = Login(user="**********", password=SecretStr("abc"))
    for codec in (codec_of(Login), PLAIN):
        with pytest.raises(ValueError, match="a secret would arrive as asterisks"):
            codec.encode(login)
    with pytest.raises(ValueError, match="a secret would arrive as asterisks"):
        codec_of(Login).encode({"user": "a", "password": "abc"})
    spelled = Spelled(user="a", password=SecretStr("abc"))
    assert codec_of(Spelled).decode(codec_of(Spelled).encode(spelled)) == spelled


def test_null_in_a_model_is_no_missing_number() -> None:
    """Only a number that became null is refused."""
    assert codec_of(dict[str, float | None]).encode({"a": None}) == b'{"a":null}'


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", Thread, object()])
def test_without_an_annotation_what_json_cannot_say_is_refused(value: object) -> None:
    """A set would come back as a list, and bytes as a text."""
    with pytest.raises(ValueError, match="Type is not JSON serializable"):
        PLAIN.encode(value)


def test_bytes_that_are_no_text_are_refused() -> None:
    """JSON has texts only: an annotation such as pydantic's Base64Bytes says how others travel."""
    with pytest.raises(ValueError, match="utf-8"):
        codec_of(bytes).encode(b"\xff\xfe")


def test_without_an_annotation_values_arrive_as_json_has_them() -> None:
    """A decimal as its digits, a model as an object."""
    value = {"price": Decimal("1.10"), "page": Page(url="a"), "id": UUID(int=1), "colour": Colour.RED}
    assert PLAIN.decode(encode(value)) == {
        "price": "1.10",
        "page": {"url": "a", "price": "0.10", "at": "2026-03-29T01:30:00Z", "colour": "red"},
        "id": str(UUID(int=1)),
        "colour": "red",
    }


def test_what_does_not_fit_is_named_by_its_field() -> None:
    """All of it, so that it can be corrected in one go."""
    with pytest.raises(DoesNotFit) as caught:
        codec_of(Page).encode({"price": "much", "colour": "red"})
    assert [field for field, _ in caught.value.mistakes] == ["url", "price"]
    assert str(caught.value).startswith("url: Field required; price: ")
    with pytest.raises(DoesNotFit, match=r"^1\.url: Field required$"):
        codec_of(list[Page]).decode(b'[{"url": "a"}, {}]')


def test_what_was_wrong_is_not_quoted() -> None:
    """A body may hold what nobody should read in a log."""
    with pytest.raises(DoesNotFit) as caught:
        codec_of(Page).encode({"url": "a", "price": "secret"})
    assert "secret" not in str(caught.value)


def test_aliases_and_strict_models_travel() -> None:
    """They are read as JSON, in which a moment is a text."""

    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        at: datetime = Field(alias="moment")

    value = Strict(moment=datetime(2026, 1, 1, tzinfo=UTC))
    assert codec_of(Strict).decode(codec_of(Strict).encode(value)) == value


def test_what_encodes_itself_is_encoded_once() -> None:
    """Bytes as base64, also without a model around them."""
    codec = codec_of(Base64Bytes)
    assert codec.decode(codec.encode(b"\xff\x00")) == b"\xff\x00"
    assert codec_of(list[Base64Bytes]).decode(codec_of(list[Base64Bytes]).encode([b"\xff"])) == [b"\xff"]


def test_a_model_that_was_changed_since_is_looked_at_again() -> None:
    """Its reader could not read it."""

    class Positive(BaseModel):
        n: int = Field(gt=0)

    value = Positive(n=1)
    value.n = -1
    with pytest.raises(DoesNotFit, match="n: Input should be greater than 0"):
        codec_of(Positive).encode(value)


def test_a_class_that_cannot_travel_is_refused_with_a_way_out() -> None:
    """When the phase is declared, not when its first job ends."""
    with pytest.raises(TypeError, match="values of Thread cannot travel as JSON: use a pydantic model"):
        codec_of(Thread)


def page(url: str) -> Page:
    return Page(url=url)


async def fetched(url: str) -> list[Page]:
    return [page(url)]


def maybe(job: object) -> Done[Page] | Page | Callable[[object], None] | None: ...


def unknown(job: object) -> Missing: ...  # type: ignore[name-defined]  # noqa: F821


def test_what_a_function_returns_is_read_from_its_annotation() -> None:
    """Through Done, functions that write, coroutines, partial functions and asyncio.to_thread."""
    assert returned(page) is Page
    assert returned(fetched) == list[Page]
    assert returned(partial(page, "a")) is Page
    assert returned(asyncio.to_thread, page, "a") is Page
    assert returned(lambda job: 3) is Any
    assert returned(maybe) == Page | None


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    """Taken for plain JSON, a decimal would silently become a text."""
    with pytest.raises(TypeError, match=r"annotation 'Missing' of unknown cannot be read .* import what it names"):
        returned(unknown)
