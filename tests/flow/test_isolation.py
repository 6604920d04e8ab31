"""Rule 4: a phase behaves in a child process as it does in a thread, and only its own death counts against it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest

from pipeline import submit
from tests.place import Place
from tests.processes import lives

MODULE = """
import subprocess, sys, time
from pipeline import Job, Workflow

if "fork_server" in sys.argv[0]:
    time.sleep({slow})

own = Workflow("own")

def act(job: Job) -> object:
    match job.body["do"]:
        case "keys": return {{1: "a", "b": {{2: [3]}}}}
        case "object": return {{"it": object()}}
        case "exit": sys.exit(3)
        case "surrogate": raise RuntimeError("\\ud800")
        case "family": subprocess.run(["sleep", "1000"])
        case "sleep": time.sleep(float(job.body["seconds"]))

own.phase("act", pool=None, isolated={isolated}, time_limit={limit}, max_attempts=1, max_crashes=1)(act)

if __name__ == "__main__":
    from dramatiq.cli import main, make_argument_parser
    sys.exit(main(make_argument_parser().parse_args(["pipeline.actors", "--processes", "1", "--threads", "2"])))
"""


def start(place: Place, *command: str, isolated: bool = True, slow: float = 0, limit: float = 30) -> None:
    """A worker that knows the module by its command line alone, not by the settings."""
    (place.folder / "own.py").write_text(MODULE.format(isolated=isolated, slow=slow, limit=limit))
    environment = {**os.environ, **place.environment(), "PIPELINE_WORKFLOWS": ""}
    log = place.folder / "own.log"
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=place.folder,
        env=environment,
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    place._workers.adopt(process, log)
    place.until(lambda: "ready for action" in log.read_text(), 30, "the worker")


BY_NAME = ("-m", "dramatiq", "pipeline.actors", "own", "--processes", "1", "--threads", "2")


def end(place: Place, **body: object) -> dict[str, Any]:
    [row] = place.finished(submit(None, "own", dict(body)), timeout=40)
    return row


@pytest.mark.parametrize("command", [BY_NAME, ("own.py",), ("-m", "own")], ids=["by name", "a script", "python -m"])
def test_a_workflow_is_found_in_the_child_however_the_worker_imported_it(
    place: Place, command: tuple[str, ...]
) -> None:
    """F16: the child imports what declares the phase, from where the worker did."""
    start(place, *command)
    row = end(place, do="keys")
    assert (row["status"], row["crashes"], row["result"]) == ("succeeded", 0, {"act": {"1": "a", "b": {"2": [3]}}})


@pytest.mark.parametrize("isolated", [False, True], ids=["thread", "child"])
def test_results_and_errors_are_the_same_in_a_thread_and_in_a_child(place: Place, isolated: bool) -> None:
    """F16: what cannot be encoded is the phase's error, and no crash."""
    start(place, *BY_NAME, isolated=isolated)
    assert end(place, do="keys")["result"] == {"act": {"1": "a", "b": {"2": [3]}}}
    for do, says in (("object", "not JSON serializable"), ("surrogate", "RuntimeError: ?"), ("exit", "SystemExit: 3")):
        row = end(place, do=do)
        assert (row["status"], row["attempts"], row["crashes"]) == ("failed", 1, 0), row["error_message"]
        assert says in row["error_message"]


def test_the_start_of_a_child_is_no_part_of_the_phases_time(place: Place) -> None:
    """F16: imports take longer than the limit; the limit holds from the moment the phase begins."""
    start(place, *BY_NAME, slow=4, limit=3)
    assert end(place, do="sleep", seconds=1)["status"] == "succeeded"
    began = time.monotonic()
    row = end(place, do="sleep", seconds=60)
    assert (row["status"], row["crashes"]) == ("failed", 1) and "time limit of 3 s" in row["error_message"]
    assert time.monotonic() - began < 20


def test_no_child_outlives_a_worker_that_was_killed(place: Place) -> None:
    """Neither one with a job nor an idle one, nor what they started, nor the fork server."""
    start(place, *BY_NAME)
    assert end(place, do="keys")["status"] == "succeeded"
    job = submit(None, "own", {"do": "family"})
    [worker] = place.pids()
    place.until(lambda: "sleep" in names(worker), 20, "the job to run")
    family = psutil.Process(worker).children(recursive=True)
    assert sorted(p.name() for p in family) == ["pipeline-child", "pipeline-forks", "sleep"]
    os.kill(worker, signal.SIGKILL)
    place.until(lambda: not any(lives(process.pid) for process in family), 10, "all of them to end")
    assert place.job(job)["crashes"] == 0


def names(worker: int) -> list[str]:
    return [process.name() for process in psutil.Process(worker).children(recursive=True)]


def test_the_traceback_of_an_error_is_in_the_log(place: Place) -> None:
    """As it is for a phase in a thread."""
    start(place, *BY_NAME)
    row = end(place, do="surrogate")
    assert "RuntimeError" in row["error_message"] and "own.py" in row["error_message"]
    place.until(lambda: "in act" in place.logs() and "an isolated phase failed" in place.logs(), 10, "the traceback")
