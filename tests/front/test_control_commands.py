"""``pipeline set``, ``pause --all``, ``drain`` and ``audit``."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from pipeline import submit
from pipeline.declare.errors import BadInput
from pipeline.front.cli.main import app
from tests.db import steps
from tests.place import Place

Say = Callable[..., str]
IN_FORCE = "SELECT pool, throttle_count, pool_is_set, rate_is_set FROM pipeline.phases WHERE queue = 'pooled.narrow'"


@pytest.fixture
def say(place: Place, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Run a command and return what it prints on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "250")
    return lambda *words: CliRunner().invoke(app, words, catch_exceptions=False).stdout


def test_pool_and_rate_are_set_and_set_back(place: Place, say: Say) -> None:
    """``pipeline workflows`` says that they are an operator's."""
    assert say("set", "pooled.narrow", "--pool", "5", "--rate", "100/min") == (
        "pool of pooled.narrow: 5\nrate of pooled.narrow: 100/min\n"
    )
    assert place.row(IN_FORCE) == {"pool": 5, "throttle_count": 1, "pool_is_set": True, "rate_is_set": True}
    assert "5 (set; declared 3)" in say("workflows")
    say("set", "pooled.narrow", "--pool", "none")
    assert place.row(IN_FORCE) == {"pool": None, "throttle_count": 1, "pool_is_set": True, "rate_is_set": True}
    say("set", "pooled.narrow", "--pool", "declared", "--rate", "declared")
    assert place.row(IN_FORCE) == {"pool": 3, "throttle_count": None, "pool_is_set": False, "rate_is_set": False}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("set", "pooled.narrow"), "name one phase and what to set"),
        (("set", "pooled", "--pool", "3"), "name one phase"),
        (("set", "pooled.gone", "--pool", "3"), "no workflow or phase"),
        (("set", "pooled.narrow", "--pool", "0"), "1 to 10000, none or declared, not '0'"),
        (("set", "pooled.narrow", "--rate", "often"), "--rate: 'often' is not a rate"),
        (("pause",), "or say --all"),
        (("pause", "single", "--all"), "or say --all"),
        (("resume", ""), "no workflow or phase ''"),
        (("drain", "nobody"), "no worker 'nobody' is alive"),
    ],
)
def test_what_cannot_be_meant_is_refused(say: Say, words: tuple[str, ...], told: str) -> None:
    """Nothing is paused because a variable was empty."""
    with pytest.raises(BadInput, match=told):
        say(*words)


def test_what_is_done_at_the_command_line_is_in_the_audit(place: Place, say: Say) -> None:
    """With the user of the machine; also as JSON."""
    job, other = submit(None, "single", {}, tags=["wrong"]), submit(None, "single")
    say("pause", "--all", "--reason", "a deploy")
    say("resume", "--all")
    say("cancel", "--where", "tag=wrong", "--yes", "--reason", "a mistake")
    say("replay", str(job), "--reason", "no mistake")
    say("cancel", str(other))
    found = json.loads(say("audit", "--json"))
    assert [(one["action"], one["subject"], one["reason"]) for one in found] == [
        ("cancel", None, "cancelled by request"),
        ("replay", None, "no mistake"),
        ("cancel", None, "a mistake"),
        ("resume", "everything", None),
        ("pause", "everything", "a deploy"),
    ]
    assert {(one["who"], one["door"]) for one in found} == {(getpass.getuser(), "command line")}
    assert [one["action"] for one in json.loads(say("audit", "--job", str(job), "--json"))] == ["replay", "cancel"]
    shown = say("audit", "--limit", "2")
    assert "no mistake" in shown and str(job) in shown and f"--before {found[1]['id']}" in shown


def test_a_drained_worker_finishes_what_it_has_and_takes_nothing_new(place: Place, say: Say) -> None:
    """It goes on with no job, not even with the next phase of its own; then it takes them again."""
    place.worker(threads=2)
    job = submit(None, "triple", {"seconds": 2})
    place.until(lambda: place.job(job)["status"] == "running", 10, "the job to run")
    place.until(lambda: place.count("SELECT memory FROM pipeline.workers") > 2**20, 10, "a heartbeat")
    [worker] = json.loads(say("workers", "--json"))
    assert worker["version"].startswith("0.") and worker["state"] == "alive"
    assert say("drain", worker["id"]) == f"{worker['id']} is draining; 1 jobs run\n"
    place.until(lambda: place.job(job)["phase"] == "second", 10, "its phase to end")
    waits = submit(None, "single")
    place.until(lambda: place.job(job)["status"] == "pending", 10, "the job to be handed over")
    assert say("drain", worker["id"], "--wait", "5s") == f"{worker['id']} is draining; 0 jobs run\n"
    assert json.loads(say("workers", "--json"))[0]["state"] == "draining"
    assert say("workers", "--ready") == "1 ready\n"
    assert {place.job(one)["status"] for one in (job, waits)} == {"pending"}
    say("drain", worker["id"], "--undo")
    assert {row["status"] for row in place.finished(job, waits)} == {"succeeded"}
    assert [run[1] for run in place.executions() if run[0] == str(job)] == ["first", "second", "third"]


def test_a_worker_that_runs_jobs_after_the_wait_is_told_by_the_exit_code(place: Place) -> None:
    """So that a script can stop it or wait on."""
    steps.sign_on(place.db, "w1")
    steps.held(place.db)
    said = CliRunner().invoke(app, ["drain", "w1", "--wait", "1s", "--json"])
    assert (said.exit_code, json.loads(said.stdout)) == (1, {"worker": "w1", "draining": True, "running": 1})
