"""What may be said of a job when it is submitted, beside its body."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, get_args

from pipeline.declare.errors import BadInput

if TYPE_CHECKING:
    from uuid import UUID

Order = Literal["finish-first", "start-first"]
Until = Literal["open", "replace"]
Unique: TypeAlias = Until | timedelta
MOST_TAGS = 20
LONGEST_TAG = 64
LONGEST_KEY = 500


class WorkflowOptions(TypedDict, total=False):
    """What a workflow takes beside its types, for type checkers; ``Workflow`` explains and spells it out."""

    order: Order
    key: str | None
    per_key: int | None
    per_key_rate: str | None
    in_order: bool


class Options(TypedDict, total=False):
    """What ``submit`` and ``submit_many`` take, for type checkers; ``submit`` explains and spells it out."""

    priority: int
    batch: UUID | None
    due: datetime | None
    delay: timedelta | None
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
    jobs: int,
    priority: int,
    keys: Sequence[str | None] | None,
    unique: Unique | None,
    debounce: timedelta | None,
    due: datetime | None,
    delay: timedelta | None,
    tags: Sequence[str] | None,
    expires: timedelta | datetime | None,
) -> None:
    """Raise ``BadInput`` for what cannot be meant, or what PostgreSQL would refuse in words of its own."""
    if not isinstance(priority, int):
        raise BadInput(f"priority is a whole number from 0 to 9, not {priority!r}")
    _check_keys(keys, jobs)
    _check_unique(unique, debounce, keyed=keys is not None and None not in keys)
    if sum(one is not None for one in (due, delay, debounce)) > 1:
        raise BadInput("due, delay and debounce exclude each other: each says when the job is due")
    if delay is not None and not isinstance(delay, timedelta):
        raise BadInput(f"delay is a timedelta, not {delay!r}")
    _check_moment("due", due)
    if not isinstance(expires, timedelta):
        _check_moment("expires", expires, or_else=" or a timedelta")
    for name, value in (("unique", unique), ("debounce", debounce), ("delay", delay), ("expires", expires)):
        if isinstance(value, timedelta) and value <= timedelta(0):
            raise BadInput(f"{name} is a time above zero, not {value}")
    _check_tags(tags or ())


def _check_unique(unique: Unique | None, debounce: timedelta | None, *, keyed: bool) -> None:
    if unique is not None and not (isinstance(unique, timedelta) or unique in get_args(Until)):
        raise BadInput(f"unique is 'open', 'replace' or a timedelta, not {unique!r}")
    if unique is not None and debounce is not None:
        raise BadInput("unique and debounce exclude each other: debounce replaces a job that waits, as 'replace' does")
    if unique == "replace" and not keyed:
        raise BadInput("unique='replace' needs a key: without one, the same body would be replaced by itself")
    if debounce is not None and not isinstance(debounce, timedelta):
        raise BadInput(f"debounce is a timedelta, not {debounce!r}")


def _check_moment(name: str, moment: object, or_else: str = "") -> None:
    """Without a time zone it would be read in the one of PostgreSQL's session."""
    if moment is None:
        return
    if not isinstance(moment, datetime):
        raise BadInput(f"{name} is a datetime with a time zone{or_else}, not {moment!r}")
    if moment.utcoffset() is None:
        raise BadInput(
            f"{name} has no time zone: {moment!r}; datetime.now(UTC) has one, and .astimezone() adds this machine's"
        )


def _check_keys(keys: Sequence[str | None] | None, jobs: int) -> None:
    if keys is None:
        return
    if isinstance(keys, str) or len(keys) != jobs:
        raise BadInput(f"keys has one key, or None, for each of the {jobs} bodies, not {keys!r:.200}")
    for key in keys:
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and "\0" not in key):
            raise BadInput(f"a key is a text of 1 to {LONGEST_KEY} characters without NUL, not {key!r:.100}")


def _check_tags(tags: Sequence[str]) -> None:
    if isinstance(tags, str):
        raise BadInput(f"tags is a list of words, not the text {tags!r}")
    if len(tags) > MOST_TAGS or not all(_is_tag(tag) for tag in tags):
        raise BadInput(f"a job has at most {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters each, without NUL")


def _is_tag(tag: object) -> bool:
    return isinstance(tag, str) and 0 < len(tag) <= LONGEST_TAG and "\0" not in tag
