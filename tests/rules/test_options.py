"""What may be said of a job when it is submitted: what cannot be meant is refused before any statement."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipeline import BadInput, submit, submit_many

HOUR = timedelta(hours=1)
# Nobody answers there: whoever gets as far as a statement fails in another way.
CALLER: Any = object()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unique": "closed"}, "unique is 'open', 'replace' or a timedelta, not 'closed'"),
        ({"unique": 3600}, "unique is 'open', 'replace' or a timedelta, not 3600"),
        ({"unique": "open", "debounce": HOUR}, "unique and debounce exclude each other"),
        ({"unique": "replace"}, "unique='replace' needs a key"),
        ({"debounce": HOUR, "due": datetime.now(UTC)}, "due, delay and debounce exclude each other"),
        ({"delay": HOUR, "due": datetime.now(UTC)}, "due, delay and debounce exclude each other"),
        ({"delay": timedelta(0)}, "delay is a time above zero, not 0:00:00"),
        ({"delay": 5}, "delay is a timedelta, not 5"),
        ({"unique": -HOUR}, "unique is a time above zero, not -1 day, 23:00:00"),
        ({"debounce": timedelta(0)}, "debounce is a time above zero, not 0:00:00"),
        ({"expires": -HOUR}, "expires is a time above zero"),
        ({"tags": "vip"}, "tags is a list of words, not the text 'vip'"),
        ({"tags": ["x"] * 21}, "at most 20 tags"),
        ({"tags": [""]}, "1 to 64 characters"),
        ({"tags": ["x" * 65]}, "1 to 64 characters"),
        ({"tags": ["a\0"]}, "without NUL"),
        ({"priority": "high"}, "priority is a whole number from 0 to 9, not 'high'"),
        ({"debounce": 5}, "debounce is a timedelta, not 5"),
        ({"due": HOUR}, "due is a datetime with a time zone, not datetime.timedelta"),
        ({"due": datetime(2030, 1, 1)}, "due has no time zone"),
        ({"expires": 5}, "expires is a datetime with a time zone or a timedelta, not 5"),
        ({"expires": datetime(2030, 1, 1)}, "expires has no time zone"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(options: dict[str, Any], said: str) -> None:
    """For one job and for many."""
    with pytest.raises(BadInput) as one:
        submit(CALLER, "orders", {}, **options)
    with pytest.raises(BadInput) as many:
        submit_many(CALLER, "orders", [{}], **options)
    assert str(one.value) == str(many.value) and said in str(one.value)


def test_each_of_many_jobs_needs_a_key_to_be_replaced_by() -> None:
    """One without a key has no successor."""
    with pytest.raises(BadInput, match="needs a key"):
        submit_many(CALLER, "orders", [{}, {}], keys=["a", None], unique="replace")


@pytest.mark.parametrize("key", [3, "", "a\0b", "k" * 501])
def test_what_no_key_can_be_is_refused(key: Any) -> None:
    """An empty one is a mistake: all jobs with it would be one."""
    with pytest.raises(BadInput, match="a key is a text of 1 to 500 characters without NUL"):
        submit(CALLER, "orders", {}, key=key)
    with pytest.raises(BadInput, match="a key is a text"):
        submit_many(CALLER, "orders", [{}, {}], keys=["a", key])


@pytest.mark.parametrize("keys", [[], ["a"], ["a", "b", "c"], "ab"])
def test_each_of_many_jobs_has_its_own_place_among_the_keys(keys: Any) -> None:
    """Those behind the last key would have none, and be submitted once more with every repeat of the call."""
    with pytest.raises(BadInput, match="keys has one key, or None, for each of the 2 bodies, not "):
        submit_many(CALLER, "orders", [{}, {}], keys=keys)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"key": "k" * 500},
        {"due": datetime.now(UTC), "expires": datetime.now(UTC)},
        {"unique": "open"},
        {"unique": HOUR, "tags": ["x" * 64] * 20},
        {"key": "k", "unique": "replace"},
        {"debounce": HOUR},
        {"delay": HOUR},
    ],
)
def test_what_can_be_meant_goes_on(options: dict[str, Any]) -> None:
    """To the caller, who is none here."""
    with pytest.raises(TypeError, match="transaction of PostgreSQL"):
        submit(CALLER, "orders", {}, **options)


def test_a_forgotten_session_is_named() -> None:
    """The name of the workflow stands where the session belongs."""
    with pytest.raises(TypeError, match="submit\\(None, 'orders'"):
        submit("orders", {"order": 17})  # type: ignore[call-overload]
