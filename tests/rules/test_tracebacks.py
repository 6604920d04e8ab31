"""How an error is told: the team's frames shown, others folded, bounded, without secrets."""

from __future__ import annotations

import json
import sys
import threading

import pytest
from sqlalchemy.exc import IntegrityError

from pipeline.declare.errors import Permanent
from pipeline.journey.settle import describe
from pipeline.observe import tracebacks


def raised(act: object) -> BaseException:
    try:
        act()  # type: ignore[operator]
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def parse() -> None:
    json.loads("{")


def nested(depth: int) -> None:
    if depth:
        nested(depth - 1)
    raise ValueError("deep")


def test_the_teams_frames_are_shown_and_those_of_libraries_folded() -> None:
    """The last frame is shown whoever's it is."""
    told = tracebacks.formatted(raised(parse))
    assert told.startswith("Traceback (most recent call last):")
    assert 'test_tracebacks.py"' in told and "in parse" in told and 'json.loads("{")' in told
    assert "  … 2 of Python\n" in told and "in raw_decode" in told and "in decode\n" not in told
    assert told.splitlines()[-1].startswith("json.decoder.JSONDecodeError: Expecting property name enclosed in")


def test_the_place_is_the_teams_line_nearest_to_the_error() -> None:
    """Not the library's, in which all such errors are raised; the line of the error says the same."""
    error = raised(parse)
    place = tracebacks.place(error, team=True)
    assert place is not None and place.startswith("test_tracebacks.py:")
    assert describe(error).endswith(f"({place})")


def test_an_error_that_came_from_another_says_so() -> None:
    """The first one first, as Python prints it."""

    def act() -> None:
        try:
            parse()
        except ValueError as error:
            raise Permanent("no JSON") from error

    told = tracebacks.formatted(raised(act))
    assert told.index("JSONDecodeError") < told.index("direct cause") < told.index("errors.Permanent: no JSON")


def test_a_group_tells_its_errors() -> None:
    """The first five of them."""
    told = tracebacks.formatted(ExceptionGroup("some", [ValueError(f"number {n}") for n in range(7)]))
    assert "  | ValueError: number 4" in told and "number 5" not in told and "and 2 more" in told


@pytest.mark.parametrize("said", ["x" * 100_000, "é" * 50_000, "a\x00b", "\ud800"])
def test_what_is_kept_is_bounded_and_can_be_stored(said: str) -> None:
    """However long it is, and whatever is in it."""
    told = tracebacks.formatted(raised(lambda: (_ for _ in ()).throw(ValueError(said))))
    assert len(told.encode()) <= tracebacks.LONGEST and "\x00" not in told


def test_a_recursion_is_told_shortly() -> None:
    """Its outermost and innermost frames."""
    told = tracebacks.formatted(raised(lambda: nested(900)))
    assert len(told.encode()) <= tracebacks.LONGEST and "more times" in told and "ValueError: deep" in told


@pytest.mark.parametrize(
    "said",
    [
        "cannot reach postgresql://app:hunter2@db/app",
        "password=hunter2 is wrong",
        "{'api_key': 'hunter2'}",
        "OPENAI_API_KEY=hunter2",
        "Authorization: Bearer hunter2hunter2",
    ],
)
def test_secrets_are_left_out(said: str) -> None:
    """Where their shape or their name says what they are, in the error's line and in its traceback."""
    error = raised(lambda: (_ for _ in ()).throw(ValueError(said)))
    assert "hunter2" not in describe(error) + tracebacks.formatted(error) and "***" in describe(error)


def test_parameters_of_a_statement_are_left_out() -> None:
    """They are what the job is about."""
    error = IntegrityError("INSERT INTO people VALUES (%s)", {"name": "Ada"}, ValueError("duplicate key"))
    told = tracebacks.formatted(error)
    assert "duplicate key" in told and "Ada" not in told


def test_where_a_thread_is_can_be_told_from_outside() -> None:
    """As if it had raised an error there."""
    ready, end = threading.Event(), threading.Event()

    def stuck() -> None:
        ready.set()
        end.wait(10)

    thread = threading.Thread(target=stuck)
    thread.start()
    ready.wait(10)
    frame = sys._current_frames()[thread.ident or 0]
    told = tracebacks.formatted(ValueError("out of time").with_traceback(tracebacks.of_frame(frame)))
    end.set()
    thread.join()
    assert "in stuck" in told and "end.wait(10)" in told
