"""What an exception means for a job."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.declare.errors import GiveUp, Permanent, Retry, Snooze, SnoozeFor, Transient, classify, retry_after

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CAP = 3600.0


@dataclass
class Response:
    status_code: object
    headers: Any = field(default_factory=dict)


class HttpError(Exception):
    """Looks like httpx's and requests' errors without being either."""

    def __init__(self, status: object, headers: Any = None) -> None:
        super().__init__(f"HTTP {status}")
        self.response = Response(status, {} if headers is None else headers)


# ---- Retry-After


@given(st.integers(min_value=0, max_value=10**40))
def test_a_number_is_taken_as_seconds_up_to_the_cap(seconds: int) -> None:
    """Huge ones too; none is a second."""
    assert retry_after(str(seconds), NOW) == min(max(float(seconds), 1.0), CAP)


@given(st.integers(min_value=-(10**8), max_value=10**8))
def test_a_date_is_taken_as_the_seconds_until_then(ahead: int) -> None:
    """The past means soon, the far future the cap: nobody can make a loop of it that never rests."""
    moment = format_datetime(NOW + timedelta(seconds=ahead), usegmt=True)
    assert retry_after(moment, NOW) == min(max(float(ahead), 1.0), CAP)


def test_a_date_without_a_zone_counts_as_utc() -> None:
    """-0000 says that the zone is unknown."""
    assert retry_after("Fri, 02 Jan 2026 03:05:05 -0000", NOW) == 60


@given(st.text() | st.from_regex(r"\A[A-Za-z]{3}, \d{1,3} [A-Za-z]{3} \d{1,6} [\d:]{1,9}( [-+A-Z0-9]{1,6})?\Z"))
@example("")
@example("   ")
@example("soon")
@example("-5")
@example("1.5")
@example("١٢")
@example("Mon, 01 Jan 99999 00:00:00 GMT")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
def test_whatever_a_server_writes_is_answered_with_a_bounded_wait_or_none(value: str) -> None:
    """Garbage never raises: the error it came with is what matters."""
    wait = retry_after(value, NOW)
    assert wait is None or 1 <= wait <= CAP


# ---- classify


@given(st.sampled_from([408, 425, 429]) | st.integers(min_value=500, max_value=599))
def test_a_passing_http_error_is_tried_again(status: int) -> None:
    """408, 425, 429 and 5xx."""
    assert classify(HttpError(status), NOW) == Retry()


@given(st.integers(min_value=400, max_value=499).filter(lambda status: status not in (408, 425, 429)))
def test_any_other_4xx_is_hopeless(status: int) -> None:
    """Not found stays not found."""
    assert classify(HttpError(status), NOW) == GiveUp()


@given(st.sampled_from([429, 503]), st.integers(min_value=0, max_value=3600))
def test_a_server_that_names_a_time_costs_no_attempt(status: int, seconds: int) -> None:
    """Retry-After snoozes, and says that the other side asked for it."""
    verdict = classify(HttpError(status, {"retry-after": str(seconds)}), NOW)
    assert verdict == SnoozeFor(max(seconds, 1), "retry_after")
    assert isinstance(verdict, SnoozeFor) and verdict.asked


def test_retry_after_on_a_permanent_error_changes_nothing() -> None:
    """A 404 with a Retry-After is a 404."""
    assert classify(HttpError(404, {"retry-after": "5"}), NOW) == GiveUp()


@pytest.mark.parametrize("status", [None, "503", 200, 302, True])
def test_a_response_that_is_no_http_error_counts_as_unknown(status: object) -> None:
    """Unknown is transient."""
    assert classify(HttpError(status), NOW) == Retry()


@pytest.mark.parametrize("headers", [None, "no mapping", {"retry-after": 5}, {"retry-after": "soon"}, {"other": "5"}])
def test_a_useless_retry_after_is_a_plain_retry(headers: object) -> None:
    """Whatever shape the headers have."""
    assert classify(HttpError(503, headers), NOW) == Retry()


@given(
    st.sampled_from([ValueError, KeyError, RuntimeError, OSError, MemoryError, TimeoutError, ZeroDivisionError]),
    st.text(),
)
def test_an_unknown_exception_is_transient(kind: type[Exception], said: str) -> None:
    """A bug today may be fixed tomorrow; the budget bounds it."""
    assert classify(kind(said), NOW) == Retry()


def test_what_the_phase_says_itself_counts_first() -> None:
    """Permanent, Transient and Snooze mean what they say, whatever else the error carries."""
    for error, verdict in (
        (Permanent("x"), GiveUp()),
        (Transient("x"), Retry()),
        (Snooze(5, "breaker"), SnoozeFor(5, "breaker")),
    ):
        error.__dict__.update(response=Response(404), connection_invalidated=True)
        assert classify(error, NOW) == verdict


def test_a_wait_of_the_phases_own_was_asked_for_by_nobody_else() -> None:
    """Unless the phase says so: only what the other side asked for is counted."""
    for error, asked in ((Snooze(5, "retry_after"), False), (Snooze(5, "retry_after", asked=True), True)):
        verdict = classify(error, NOW)
        assert isinstance(verdict, SnoozeFor) and verdict.asked is asked


def test_a_lost_database_connection_parks() -> None:
    """G6: a restart of PostgreSQL costs no budget."""
    error = RuntimeError("server closed the connection")
    error.connection_invalidated = True  # type: ignore[attr-defined]
    verdict = classify(error, NOW)
    assert isinstance(verdict, SnoozeFor)
    assert verdict.reason == "connection_lost"


class OperationalError(Exception):
    """Looks like psycopg's; ``sqlstate`` is None when no server answered."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("the server said so")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    "state",
    [None, "08006", "57P01", "57P03", "25006", "25P03", "53100", "53200", "53300", "40001", "40P01", "55P03", "58030"],
)
def test_a_database_that_is_away_parks_also_inside_another_error(state: str | None) -> None:
    """Unreachable, hung up or restarting; SQLAlchemy carries the driver's error as ``orig``."""
    wrapped = RuntimeError("wrapped")
    wrapped.__dict__["orig"] = OperationalError(state)
    for error in (OperationalError(state), wrapped):
        assert classify(error, NOW) == SnoozeFor(1.0, "connection_lost")


def test_a_database_that_does_not_answer_a_connection_parks() -> None:
    """A kind of error of its own in psycopg: the network swallows one direction, and the connection times out."""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect(host="127.0.0.1", port=silent.getsockname()[1], connect_timeout=2)
    assert type(raised.value) is psycopg.errors.ConnectionTimeout
    assert classify(raised.value, NOW) == SnoozeFor(1.0, "connection_lost")


@pytest.mark.parametrize("state", ["23505", "22P02", "57014", "42883", ""])
def test_what_a_living_database_refuses_is_the_jobs_own_error(state: str) -> None:
    """Violated constraints, bad input and a statement that ran out of time cost an attempt."""
    assert classify(OperationalError(state), NOW) == Retry()


@given(st.floats())
@example(float("inf"))
@example(float("nan"))
@example(-1.0)
@example(1e300)
def test_a_wait_is_a_length_of_time_that_postgresql_can_hold(seconds: float) -> None:
    """``make_interval`` refuses infinity; a century is longer than any job waits."""
    assert 0 <= Snooze(seconds).seconds <= 100 * 366 * 86400


def test_a_wait_says_how_long_and_why() -> None:
    """For the log and the timeline."""
    assert str(Snooze(2, "rate_limit")) == "waits 2.0 s: rate_limit"
    assert str(Snooze(2, "rate_limit", "the quota is used up")) == "the quota is used up"
