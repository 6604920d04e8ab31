"""Rule 4: a phase behaves in a child process as it does in a thread, and only its own death counts against it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from pipeline import submit
from tests.place import Place

MODULE = """
import sys, time
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
    place._workers.append(process)
    place._logs.append(log)
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
