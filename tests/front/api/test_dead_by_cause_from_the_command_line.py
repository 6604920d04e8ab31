"""Dead letters by cause in the terminal: the same groups, canary, rate and discard as over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.declare.errors import BadInput
from pipeline.front.cli.main import app
from tests.front.api.test_http_dead import FIRST, SECOND, fail
from tests.place import Place

Say = Callable[..., Any]


@pytest.fixture
def say(place: Place) -> Say:
    """Run a command and read its JSON."""

    def run(*words: str) -> Any:
        answer = CliRunner().invoke(app, ["dead", *words, "--json"], catch_exceptions=False)
        return json.loads(answer.stdout)

    return run


def test_a_group_is_found_by_its_cause_tried_with_a_canary_and_replayed_at_a_rate(place: Place, say: Say) -> None:
    """The oldest goes first; the rest are due one after another; another cause is left alone."""
    *jobs, other = fail(place, "single", *[FIRST] * 4, SECOND)
    found = {row["cause"]: row for row in say("groups")}
    group = found["ValueError at parse.py:12: # is no price"]
    assert (group["jobs"], len(group["id"]), group["samples"][0]["id"]) == (4, 8, str(jobs[3]))
    assert group["first_at"] <= group["last_at"]
    assert say("replay", "--group", group["id"], "--canary") == {"jobs": 1, "more": True}
    assert [place.job(job)["status"] for job in jobs] == ["pending", "failed", "failed", "failed"]
    assert say("replay", "--group", group["id"], "--rate", "2") == {"jobs": 3, "more": False}
    due = [place.job(job)["next_retry_at"] for job in jobs[1:]]
    assert [later - due[0] for later in due] == [timedelta(seconds=0.5 * n) for n in range(3)]
    assert place.job(other)["status"] == "failed"


def test_a_group_is_discarded_with_its_reason(place: Place, say: Say) -> None:
    """Also by the long name that the HTTP API gives it; afterwards there is no such group."""
    one, two = fail(place, "single", FIRST, SECOND)
    group = next(row["group"] for row in say("groups") if row["cause"].startswith("ValueError at parse.py:12"))
    assert say("discard", "--group", group, "--reason", "the shop closed") == {"jobs": 1, "more": False}
    assert place.job(one)["error_message"] == f"the shop closed (was: {FIRST})"
    assert place.job(two)["status"] == "failed"
    with pytest.raises(BadInput, match="no group"):
        say("discard", "--group", group, "--reason", "again")


def test_single_jobs_are_answered_in_json_too(place: Place, say: Say) -> None:
    """A line a job, as each is done."""
    one, two = fail(place, "single", FIRST, SECOND)
    assert say("replay", str(one)) == {"job": str(one), "done": "sent again"}
    assert say("discard", str(two), "--reason", "enough") == {"job": str(two), "done": "discarded"}
    assert [place.job(job)["status"] for job in (one, two)] == ["pending", "cancelled"]


@pytest.mark.parametrize("words", [(), ("--group", "x", "some-job"), ("some-job", "--canary")])
def test_jobs_or_a_group_but_not_both_are_replayed(say: Say, words: tuple[str, ...]) -> None:
    """A canary needs a group to be chosen from."""
    with pytest.raises(BadInput, match="--group"):
        say("replay", *words)


@pytest.mark.parametrize("width", [80, 140])
def test_watch_shows_whole_headers(place: Place, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Nothing is cut at 80 columns; a wider terminal also says what jobs wait for."""
    from pipeline.front.cli import watch as cli_watch
    from pipeline.journey.submit import submit_many

    submit_many(None, "single", [{}] * 3)
    monkeypatch.setattr(cli_watch.out, "_width", width)
    lines = CliRunner().invoke(app, ["watch", "--once"], catch_exceptions=False).stdout.splitlines()
    heads = next(line for line in lines if line.startswith("phase")).split()
    assert heads[:9] == ["phase", "wait", "sent", "run", "pool", "dead", "/s", "err", "age"]
    assert heads[9:] == (["waits", "for"] if width > cli_watch.WIDE else [])
    assert next(line for line in lines if line.startswith("single.act")).split()[1:4] == ["3", "0", "0"]
    assert not [line for line in lines if "…" in line]
