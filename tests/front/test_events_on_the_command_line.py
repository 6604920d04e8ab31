"""``pipeline signal`` and ``pipeline event-link``, and what ``pipeline status`` says of jobs that wait."""

from __future__ import annotations

import json
from types import ModuleType
from uuid import uuid4

import pytest

from pipeline.journey.submit import submit
from tests.commands import pipeline
from tests.db import steps
from tests.front.waiting import end, parent, waiting
from tests.place import Place

# So that nothing wraps.
WIDE = {"COLUMNS": "200"}
RETURNS = {"PIPELINE_WORKFLOWS": "tests.front.returns"}


def test_a_job_is_told_and_the_answer_says_what_became_of_it(place: Place) -> None:
    """Words, JSON or nothing; exit code 1 and one sentence where it cannot be."""
    job = waiting(place)
    kept = pipeline(place, "signal", str(job), "other", '["a", 1]')
    assert kept.stdout == "kept: the job does not wait for it now; it is kept until it does\n"
    told = pipeline(place, "signal", str(job), "approved", "by=Ada", "level=2", "--json")
    assert json.loads(told.stdout) == {"id": str(job), "event": "approved", "answer": "delivered"}
    assert place.job(job)["result"] == {"first": {"by": "Ada", "level": 2}}
    shown = pipeline(place, "status", str(job), **WIDE).stdout
    assert "other" in shown and "approved" in shown and '{"by": "Ada", "level": 2}' in shown


def test_mistakes_are_one_sentence_that_helps(place: Place, returns: ModuleType) -> None:
    job = submit(None, "shop-returns", {})
    hold = steps.hold(place.db, job)
    steps.complete(place.db, hold, None, following={"event": "decided"})
    ended = submit(None, "single")
    place.rows("SELECT pipeline.cancel(%s)", ended)
    for words, said in (
        ((str(uuid4()), "approved"), "there is no job"),
        ((str(ended), "approved"), "has ended and takes no more events"),
        (("17", "approved"), "is not a job id"),
        ((str(job), ""), "an event's name is 1 to 200 printable characters"),
        ((str(job), "decided", "yes"), "and text in double quotes"),
        ((str(job), "decided", "yes=perhaps"), "does not fit what phase shop-returns.ask waits for: yes: "),
    ):
        answer = pipeline(place, "signal", *words, **RETURNS)
        assert answer.returncode == 1 and said in answer.stderr, answer
    assert pipeline(place, "signal", str(job), "decided", "yes=true", **RETURNS).returncode == 0


def test_a_link_is_printed_or_the_missing_setting_named(place: Place) -> None:
    job = waiting(place)
    answer = pipeline(place, "event-link", str(job), "approved")
    assert answer.returncode == 1 and "PIPELINE_EVENT_SECRET" in answer.stderr
    secret = {"PIPELINE_EVENT_SECRET": "s" * 32, "PIPELINE_API_URL": "https://jobs.example.org"}
    answer = pipeline(place, "event-link", str(job), "approved", "by=Ada", "--expires", "2h", **secret)
    assert answer.stdout.startswith("https://jobs.example.org/v1/events/") and answer.returncode == 0
    assert pipeline(place, "event-link", str(job), "approved", "--expires", "soon", **secret).returncode == 1


def test_status_says_whom_a_job_waits_for(place: Place) -> None:
    """The event and until when; the children; the parent."""
    shown = pipeline(place, "status", str(waiting(place, after=3600)), **WIDE).stdout
    assert "waits for event approved until 20" in shown and "waiting for an event" in shown
    job, children = parent(place, 5)
    end(place, children[3], children[1], failed=True)
    shown = pipeline(place, "status", str(job), **WIDE).stdout
    assert "waits for 3 of 5 children (single, best_effort), 2 failed" in shown
    assert f"first failed: {children[1]}, {children[3]}" in shown and "waiting for children" in shown
    assert f"child of: {job}  triple.second  pending" in pipeline(place, "status", str(children[0]), **WIDE).stdout
    end(place, children[0], children[2], children[4])
    assert (
        "children: 5 of 5 ended (single, best_effort), 2 failed" in pipeline(place, "status", str(job), **WIDE).stdout
    )
    found = json.loads(pipeline(place, "status", str(job), "--json").stdout)
    assert found["waiting"] is None and found["children"][0]["ended"] == 5


@pytest.mark.parametrize("words", [["signal"], ["event-link"]])
def test_the_commands_explain_themselves(place: Place, words: list[str]) -> None:
    assert "JSON" in pipeline(place, *words, "--help").stdout
