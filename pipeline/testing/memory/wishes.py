"""What a submit asks for, read from the values that PostgreSQL would get."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

# Longer than any test: a key that is kept for as long as its job is there.
FOR_EVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Wish:
    """``kept``: until when its jobs keep their keys; None: until they have ended. ``replaces``: a job that waits."""

    workflow: str
    bodies: list[str]
    priority: int = 0
    batch: str | None = None
    traceparent: str | None = None
    keys: tuple[str | None, ...] = ()
    due: datetime | None = None
    kept: datetime | None = FOR_EVER
    replaces: bool = False
    tags: tuple[str, ...] = ()
    expires: datetime | None = None


def read(values: tuple[str | None, ...], now: datetime) -> Wish:
    """The values are in the order of the parameters of ``pipeline.submit_many``."""
    workflow, bodies, priority, batch, traceparent, keys, due, delay, *further = values
    _, unique, debounce, tags, expires, within = further
    made = [body for body in texts(bodies) if body is not None]
    given: list[str | None] = texts(keys) or [None for _ in made]
    if unique is not None or debounce is not None:
        given = [_of_body(body) if key is None else key for key, body in zip(given, made, strict=True)]
    return Wish(
        workflow=workflow or "",
        bodies=made,
        priority=int(priority or 0),
        batch=batch,
        traceparent=traceparent,
        keys=tuple(given),
        due=_moment(due) if (after := delay or debounce) is None else now + _time(after),
        kept=_kept(unique, debounce, now),
        replaces=unique == "replace" or debounce is not None,
        tags=tuple(tag for tag in texts(tags) if tag is not None),
        expires=_moment(expires) if within is None else now + _time(within),
    )


def _kept(unique: str | None, debounce: str | None, now: datetime) -> datetime | None:
    if unique in ("open", "replace") or debounce is not None:
        return None
    return FOR_EVER if unique is None else now + _time(unique)


def _of_body(body: str) -> str:
    """The same body has the same key, however it was written."""
    return "body:" + orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS).decode()


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    # As PostgreSQL reads one without a zone, in this machine's.
    return moment if moment.tzinfo is not None else moment.astimezone()


def _time(text: str) -> timedelta:
    """``client`` writes times in seconds."""
    return timedelta(seconds=float(text.removesuffix(" seconds")))


def texts(array: str | None) -> list[str | None]:
    """What ``client.as_array`` made an array of PostgreSQL; nothing of None."""
    found: list[str | None] = []
    place = 1
    while array is not None and place < len(array) - 1:
        if array.startswith("NULL", place):
            found.append(None)
            place += 5
            continue
        text, place = _quoted(array, place + 1)
        found.append(text)
    return found


def _quoted(array: str, place: int) -> tuple[str, int]:
    """The text that begins there, and where the next element does."""
    text = []
    while array[place] != '"':
        place += array[place] == "\\"
        text.append(array[place])
        place += 1
    return "".join(text), place + 2
