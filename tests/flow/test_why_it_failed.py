"""A failed attempt keeps its traceback and its last lines, wherever it ran; a good one costs nothing."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from pipeline.journey.submit import submit
from tests.place import ISOLATED, Place

LOGS = "SELECT fence, traceback, lines FROM pipeline.attempt_logs WHERE job_id = %s ORDER BY fence"
# In a thread, on the event loop, in a child process.
EVERYWHERE = pytest.mark.parametrize("workflow", ["single", "lithe", "caged"])


def why(place: Place, job: UUID) -> list[dict[str, Any]]:
    return place.rows(LOGS, job)


@EVERYWHERE
def test_each_failed_attempt_keeps_its_traceback_and_its_lines(place: Place, workflow: str) -> None:
    """The phase's own frames, and what it logged; the job's line says the same place."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, workflow, {"do": "speak", "until": 99})
    row = place.finished(job)[0]
    found = why(place, job)
    assert [one["fence"] for one in found] == [1, 2, 3]
    for n, one in enumerate(found, 1):
        assert "in told" in one["traceback"] and one["traceback"].endswith(f"ValueError: no price, try {n}")
        assert "of pipeline" in one["traceback"], "the engine's frames are folded"
        for said in ("plain words", "structured words colour=red"):
            assert said in one["lines"]
        assert ("printed words" in one["lines"]) == (workflow == "caged")
    assert row["cause"].startswith("ValueError at actions.py:") and row["cause"].endswith(": no price, try #")


@EVERYWHERE
def test_what_a_phase_logs_says_whose_it_is(place: Place, workflow: str) -> None:
    """Job, phase, attempt, worker and trace, in the worker's own log."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, workflow, {"do": "speak", "until": 99})
    row = place.finished(job)[0]
    worker = place.attempts(job)[1]["worker"]
    lines = [line for line in place.logs().splitlines() if "words" in line and "attempt=2" in line]
    assert len(lines) == 2
    for line in lines:
        for named in (f"job={job}", f"phase={workflow}.act", f"worker={worker}", f"trace={row['trace_id']}"):
            assert named in line, line


def test_an_attempt_that_succeeds_keeps_nothing(place: Place) -> None:
    """Whatever it said, also where it is the second after one that failed."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    jobs = [submit(None, workflow, {"do": "speak", "until": 2}) for workflow in ("single", "lithe", "caged")]
    place.finished(*jobs)
    assert [[one["fence"] for one in why(place, job)] for job in jobs] == [[1], [1], [1]]
    assert not list(place.folder.joinpath("temp").rglob(".lines-*")), "no file is left behind"


def test_a_child_that_a_signal_kills_has_said_where_it_was(place: Place) -> None:
    """Its last lines, too: they outlive it."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, "caged", {"do": "speak-and-die"})
    row = place.finished(job)[0]
    for one in why(place, job):
        assert one["traceback"].endswith("Fatal Python error: Segmentation fault")
        assert "in _speak_and_die" in one["traceback"] and "printed words" in one["lines"]
    assert len(why(place, job)) == 3
    assert "killed by SIGSEGV (actions.py:" in row["error_message"]
    assert row["cause"].endswith("the child process was killed by SIGSEGV") and "actions.py" in row["cause"]


def test_an_attempt_out_of_time_says_where_it_was(place: Place, with_more: None) -> None:
    """One that can be interrupted, and one that is stuck in a call."""
    place.worker()
    asleep = submit(None, "brief", {"do": "sleep", "seconds": 60})
    stuck = submit(None, "brief", {"do": "blocked", "in": "c"})
    for job, function in ((asleep, "in _sleep"), (stuck, "in _in_c")):
        place.until(partial(why, place, job), 20, "its first attempt to end")
        assert function in why(place, job)[0]["traceback"]
        assert "was exceeded (actions.py:" in place.attempts(job)[0]["error"]


def test_waits_are_no_warnings_and_bodies_are_not_logged(place: Place) -> None:
    """Whoever reads warnings reads what went wrong."""
    place.worker()
    waits = submit(None, "single", {"do": "wait", "times": 2, "note": "very-private"})
    fails = submit(None, "single", {"do": "speak", "until": 99, "note": "very-private"})
    place.finished(waits, fails)
    ended = [line for line in place.logs().splitlines() if "attempt ended" in line]
    assert {"snoozed": "info", "retried": "warning"}.items() <= {
        line.split("verdict=")[1].split()[0]: line.split("[")[1].split()[0] for line in ended
    }.items()
    assert f"of job {fails} with unhandled exception" in place.logs(), "Dramatiq names it, too"
    assert "very-private" not in place.logs()
