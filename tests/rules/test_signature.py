"""A phase function that would fail every job is refused where it is declared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from pipeline import Job, Workflow

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


class Named(BaseModel):
    name: str


class Order(Named):
    count: int = 1


@dataclass
class Row:
    name: str


class Wish(TypedDict):
    name: str


class HasName(Protocol):
    @property
    def name(self) -> str: ...


def declare(work: Callable[..., Any], body: Any = None) -> None:
    workflow = Workflow(f"signature-{uuid4().hex[:12]}", body=body) if body else Workflow(f"s-{uuid4().hex[:12]}")
    workflow.phase("act")(work)


def without_a_job() -> None: ...


def with_a_job_by_name(*, job: Job) -> None: ...


def in_parts(job: Job) -> Iterator[int]:
    yield 1


async def in_parts_later(job: Job) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (without_a_job, r"does not take the job as its first argument: write def without_a_job\(job: Job\)$"),
        (with_a_job_by_name, "does not take the job as its first argument"),
        (in_parts, "is a generator, whose code would never run: return a list instead of yielding"),
        (in_parts_later, "is a generator"),
        (partial(in_parts), "is a generator"),
    ],
)
def test_a_function_that_no_job_can_call_is_refused(work: Callable[..., Any], said: str) -> None:
    """It would cost each job three attempts, or end without having run."""
    with pytest.raises(TypeError, match=said):
        declare(work)


def test_results_come_by_name() -> None:
    """An argument that has none cannot be given."""
    workflow = Workflow(f"s-{uuid4().hex[:12]}")
    workflow.phase("one")(lambda job: 1)

    def two(job: Job, one: int, /) -> None: ...

    with pytest.raises(TypeError, match=r"two takes 'one' by position alone: results of earlier phases come by name"):
        workflow.phase(two)


def of_order(job: Job[Order]) -> None: ...


def of_named(job: Job[Named]) -> None: ...


def of_row(job: Job[Row]) -> None: ...


def of_wish(job: Job[Wish]) -> None: ...


def of_protocol(job: Job[HasName]) -> None: ...


def of_unknown(job: Job[OnlyForTypeCheckers]) -> None: ...


def of_dict(job: Job[dict[str, Any]]) -> None: ...


def plain(job: Job) -> None: ...


@pytest.mark.parametrize(
    ("work", "body", "has"),
    [(of_order, None, "dict"), (of_row, Order, "Order"), (of_order, Named, "Named"), (of_order, Row, "Row")],
)
def test_a_phase_of_another_body_is_refused(work: Callable[..., Any], body: Any, has: str) -> None:
    """The usual one: body= was forgotten, and every job would fail three times with an AttributeError."""
    with pytest.raises(TypeError, match=rf"takes Job\[\w+\], and the body of workflow \S+ is {has}: write Workflow"):
        declare(work, body)


@pytest.mark.parametrize(
    ("work", "body"),
    [
        (of_order, Order),
        (of_named, Order),
        (of_row, Row),
        (of_wish, Wish),
        (of_protocol, Order),
        (of_unknown, Order),
        (of_dict, None),
        (plain, Order),
        (plain, None),
        (lambda *args: None, Order),
        (print, None),
    ],
)
def test_what_may_fit_is_left_to_type_checkers(work: Callable[..., Any], body: Any) -> None:
    """A base class, a protocol, a TypedDict, an annotation that is there for them alone."""
    declare(work, body)


@pytest.mark.parametrize("body", ["Order", Order(name="a"), Row("a"), 3])
def test_a_body_is_a_class(body: Any) -> None:
    """Not its name, and not one of its instances."""
    with pytest.raises(TypeError, match=r"body is a pydantic model, a dataclass or a TypedDict, not .* no class"):
        Workflow(f"s-{uuid4().hex[:12]}", body=body)
