"""What may be said of a job when it is submitted, beside its body."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, get_args

from pipeline.declare.errors import BadInput

if TYPE_CHECKING:
    from uuid import UUID

Until = Literal["open", "replace"]
Unique: TypeAlias = Until | timedelta
MOST_TAGS = 20
LONGEST_TAG = 64


class Options(TypedDict, total=False):
    """What ``submit`` and ``submit_many`` take, for type checkers; ``submit`` explains and spells it out."""

    priority: int
    batch: UUID | None
    due: datetime | None
    traceparent: str | None
    rate_limit: str | None
    unique: Unique | None
    debounce: timedelta | None
    tags: Sequence[str] | None
    expires: timedelta | datetime | None


class OneJob(Options, total=False):
    """Of ``submit`` alone."""

    key: str | None


class ManyJobs(Options, total=False):
    """Of ``submit_many`` alone."""

    keys: Sequence[str | None] | None


def check(
    *,
    unique: Unique | None,
    debounce: timedelta | None,
    due: datetime | None,
    tags: Sequence[str] | None,
    expires: timedelta | datetime | None,
    keyed: bool,
) -> None:
    """Raise ``BadInput`` for what cannot be meant; ``keyed``: each job has a key of its own."""
    if unique is not None and not (isinstance(unique, timedelta) or unique in get_args(Until)):
        raise BadInput(f"unique is 'open', 'replace' or a timedelta, not {unique!r}")
    if unique is not None and debounce is not None:
        raise BadInput("unique and debounce exclude each other: debounce replaces a job that waits, as 'replace' does")
    if unique == "replace" and not keyed:
        raise BadInput("unique='replace' needs a key: without one, the same body would be replaced by itself")
    if debounce is not None and due is not None:
        raise BadInput("debounce and due exclude each other: debounce says when the job is due")
    for name, value in (("unique", unique), ("debounce", debounce), ("expires", expires)):
        if isinstance(value, timedelta) and value <= timedelta(0):
            raise BadInput(f"{name} is a time above zero, not {value}")
    _check_tags(tags or ())


def _check_tags(tags: Sequence[str]) -> None:
    if isinstance(tags, str):
        raise BadInput(f"tags is a list of words, not the text {tags!r}")
    if len(tags) > MOST_TAGS or not all(isinstance(tag, str) and 0 < len(tag) <= LONGEST_TAG for tag in tags):
        raise BadInput(f"a job has at most {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters each")
