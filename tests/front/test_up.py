"""``pipeline up`` and the scheduler, as a user runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from pipeline import submit
from tests.place import ROOT, Place, lives

SCHEDULER = [
    sys.executable,
    "-c",
    "import sys, periodiq; sys.argv = ['periodiq', 'pipeline.actors']; periodiq.entrypoint()",
]


def test_up_supervises_everything_and_stops_cleanly(place: Place) -> None:
    """One worker's death does not take the others down; Ctrl-C ends all processes."""
    log = (place.folder / "up.log").open("wb")
    up = subprocess.Popen(
        [sys.executable, "-m", "pipeline.front.cli.main", "up", "--processes", "2", "--threads", "2"],
        cwd=ROOT,
        env={**os.environ, **place.environment()},
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        place.until(lambda: len(place.booted()) == 2, 40, "two workers")
        first, second = place.booted()
        os.kill(first, signal.SIGKILL)
        job = submit(None, "single", {"do": "nothing"})
        assert place.finished(job)[0]["status"] == "succeeded"
        place.until(lambda: len(place.pids()) == 2, 40, "the dead worker's successor")
        assert second in place.pids()
        everybody = place.pids()
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(60)
    assert up.returncode == 0, (place.folder / "up.log").read_text()
    place.until(lambda: not any(lives(pid) for pid in everybody), 10, "all processes to be gone")


def test_two_schedulers_do_no_harm_and_sweeps_do_not_wait_behind_jobs(place: Place) -> None:
    """All threads are busy; sweeps run all the same, and twice as many messages change nothing."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    environment = {**os.environ, **place.environment()}
    schedulers = [subprocess.Popen(SCHEDULER, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        place.until(lambda: place.logs().count("name=stale_recovery") >= 1, 90, "a sweep behind a busy thread")
        place.until(lambda: place.depth("pipeline.sweeps") == 0, 20, "all sweeps to be done")
    finally:
        for scheduler in schedulers:
            scheduler.terminate()
            scheduler.wait(10)
    assert (place.job(job)["status"], place.job(job)["fence"]) == ("running", 1)
