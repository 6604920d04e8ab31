"""``pipeline jobs``, ``pause`` and ``resume``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from pipeline import cancel, submit, submit_many
from pipeline.declare.errors import BadInput
from pipeline.front.cli.jobs import commands as cli_jobs
from pipeline.front.cli.main import app
from pipeline.store.gateway import client
from tests.place import Place

Say = Callable[..., str]


@pytest.fixture
def say(place: Place) -> Say:
    """Run a command and return what it prints."""
    return lambda *words: CliRunner().invoke(app, words, catch_exceptions=False).stdout


def ids(shown: str) -> list[str]:
    return [row["id"] for row in json.loads(shown)]


def test_jobs_are_listed_newest_first_and_page_by_page(say: Say) -> None:
    """The last id of a page is where the next one begins; the last page is short."""
    jobs = [str(job) for job in sorted(submit_many(None, "single", [{}] * 5), reverse=True)]
    assert ids(say("jobs", "--json")) == jobs
    assert ids(say("jobs", "--limit", "3", "--json")) == jobs[:3]
    assert ids(say("jobs", "--limit", "3", "--after", jobs[2], "--json")) == jobs[3:]
    shown = say("jobs", "--limit", "3")
    assert all(job in shown for job in jobs[:3]) and f"--after {jobs[2]}" in shown
    assert "--after" not in say("jobs")


def test_jobs_are_found_by_workflow_phase_and_state(say: Say) -> None:
    """Each narrows the list."""
    one, two, three = submit(None, "single"), submit(None, "triple"), submit(None, "triple")
    cancel(None, three, "not wanted")
    assert ids(say("jobs", "--workflow", "single", "--json")) == [str(one)]
    assert ids(say("jobs", "--phase", "first", "--status", "pending", "--json")) == [str(two)]
    [row] = json.loads(say("jobs", "--status", "cancelled", "--json"))
    assert (row["id"], row["workflow"], row["error_message"]) == (str(three), "triple", "not wanted")
    assert "wanted" in say("jobs", "--status", "cancelled")


def test_jobs_are_submitted_with_tags_and_found_by_them(say: Say) -> None:
    """A list and a job show them."""
    one = say("submit", "single", "--tag", "vip", "--tag", "eu").strip()
    say("submit", "single", "--tag", "eu")
    [row] = json.loads(say("jobs", "--tag", "vip", "--json"))
    assert (row["id"], row["tags"]) == (one, ["vip", "eu"])
    # A narrow terminal breaks a cell between two words.
    assert "vip," in say("jobs") and "vip, eu" in say("status", one)
    assert ids(say("jobs", "--tag", "vip", "--status", "failed", "--json")) == []


def test_a_command_says_how_long_a_key_is_kept_and_when_a_job_expires(place: Place, say: Say) -> None:
    """Times as for a pause."""
    one = say("submit", "single", '{"n": 1}', "--unique", "open")
    assert say("submit", "single", '{"n": 1}', "--unique", "open") == one
    assert say("submit", "single", '{"n": 1}', "--unique", "1h", "--key", "k") != one
    assert say("submit", "single", '{"n": 1}', "--debounce", "10m", "--key", "l") != one
    hours = UUID(say("submit", "single", "--expires", "2h").strip())
    assert abs((place.job(hours)["expires_at"] - place.job(hours)["created_at"]).total_seconds() - 7200) < 1
    assert "expires at" in say("status", str(hours))
    for option in ("--unique", "--debounce", "--expires"):
        with pytest.raises(BadInput, match=f"{option} takes a time"):
            say("submit", "single", option, "soon")


def test_a_replay_that_is_refused_for_its_key_says_so(place: Place, say: Say) -> None:
    """The job is failed, and stays so."""
    job = say("submit", "single", "--key", "k", "--unique", "open").strip()
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", job)
    say("submit", "single", "--key", "k", "--unique", "open")
    with pytest.raises(BadInput, match="another job that has not ended has its key"):
        say("replay", job)


def test_a_page_is_full_although_few_of_the_jobs_that_wait_match(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL looks at so many at once; the command asks until it has what was wanted, or nothing is left."""
    wanted = [str(submit(None, "triple")) for _ in range(2)]
    submit_many(None, "single", [{}] * 9)
    few = str(client.FIND).replace(":limit)", ":limit, 3)")
    monkeypatch.setattr(client, "FIND", text(few))
    assert sorted(ids(say("jobs", "--workflow", "triple", "--json"))) == sorted(wanted)


def test_what_is_paused_waits_and_runs_when_it_is_resumed(place: Place, say: Say) -> None:
    """Meanwhile other workflows run, and everybody can see the pause."""
    place.worker(threads=2)
    assert say("pause", "triple") == "".join(
        f"paused triple.{phase} until it is resumed; to end it: pipeline resume triple.{phase}\n"
        for phase in ("first", "second", "third")
    )
    held, free = submit(None, "triple"), submit(None, "single")
    assert place.finished(free)[0]["status"] == "succeeded"
    assert place.job(held)["status"] == "pending"
    phases = {phase["queue"]: phase for phase in json.loads(say("watch", "--once", "--json"))["phases"]}
    assert (phases["triple.first"]["paused"], phases["triple.first"]["paused_until"]) == (True, None)
    assert phases["single.act"]["paused"] is False
    assert say("resume", "triple.first") == "resumed triple.first\n"
    place.until(lambda: place.job(held)["phase"] == "second", 20, "the second phase")
    assert json.loads(say("resume", "triple", "--json")) == [
        {"queue": "triple.first", "was_paused": False},
        {"queue": "triple.second", "was_paused": True},
        {"queue": "triple.third", "was_paused": True},
    ]
    assert place.finished(held)[0]["status"] == "succeeded"


def test_a_pause_can_have_an_end(place: Place, say: Say) -> None:
    """PostgreSQL's clock counts."""
    [paused] = json.loads(say("pause", "single.act", "--for", "10m", "--json"))
    row = place.row(
        "SELECT extract(epoch FROM %s - now())::float AS left", datetime.fromisoformat(paused["paused_until"])
    )
    assert row is not None
    assert 590 < row["left"] <= 600
    assert say("resume", "single.act") == "resumed single.act\n" and "was not paused" in say("resume", "single")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("pause", "nonsense"), "no workflow or phase 'nonsense'; PostgreSQL knows: .*caged.act"),
        (("pause", "single.nonsense"), "no workflow or phase 'single.nonsense'"),
        (("resume", ""), "no workflow or phase ''"),
        (("pause", "single", "--for", "soon"), "such as 30s, 10m, 2h or 1d, not 'soon'"),
        (("pause", "single", "--for", "0s"), "not '0s'"),
        (("jobs", "--workflow", "nonsense"), "no workflow or phase 'nonsense'"),
        (("jobs", "--after", "17"), "is not a job id"),
    ],
)
def test_a_typing_error_is_refused_with_what_there_is(say: Say, words: tuple[str, ...], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        say(*words)


def test_an_id_is_never_cut(place: Place, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what the next command needs."""
    job = submit(None, "single")
    monkeypatch.setattr(cli_jobs.out, "_width", 60)
    assert str(job) in say("jobs")
