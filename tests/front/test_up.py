"""``pipeline up`` and the scheduler, as a user runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import BadInput, submit
from pipeline.dev import services, up
from pipeline.dev.up import alone
from tests.place import ROOT, Place, lives

SCHEDULER = [
    sys.executable,
    "-c",
    "import sys, periodiq; sys.argv = ['periodiq', 'pipeline.actors']; periodiq.entrypoint()",
]


def test_up_supervises_everything_and_stops_cleanly(place: Place) -> None:
    """One worker's death does not take the others down; Ctrl-C ends all processes."""
    log = (place.folder / "up.log").open("wb")
    running = subprocess.Popen(
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
        running.send_signal(signal.SIGINT)
        running.wait(60)
    assert running.returncode == 0, (place.folder / "up.log").read_text()
    place.until(lambda: not any(lives(pid) for pid in everybody), 10, "all processes to be gone")


def test_a_second_ctrl_c_ends_everything_at_once_and_says_what_becomes_of_the_jobs(place: Place) -> None:
    """Without it a job that runs has its grace."""
    log = place.folder / "up.log"
    with log.open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", "pipeline.front.cli.main", "up", "--processes", "1", "--threads", "1"],
            cwd=ROOT,
            env={**os.environ, **place.environment(), "PIPELINE_SHUTDOWN_GRACE_SECONDS": "25"},
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        job = submit(None, "single", {"do": "sleep", "seconds": 60})
        place.running(job, timeout=40)
        everybody = place.pids()
        running.send_signal(signal.SIGINT)
        place.until(lambda: "jobs that run have 25 s" in log.read_text(), 10, "the first word")
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(15)
    assert running.returncode == 0 and "go on at the next start" in log.read_text(), log.read_text()
    place.until(lambda: not any(lives(pid) for pid in everybody), 5, "all processes to be gone")


def test_up_runs_once_in_a_folder(tmp_path: Path) -> None:
    """Whose end stops the servers, which another one's workers would miss."""
    with alone(tmp_path), pytest.raises(BadInput, match=rf"already \(process {os.getpid()}\)"), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


@pytest.mark.parametrize("address", ["postgresql://of-the-folder", "postgresql://elsewhere"])
def test_a_second_one_is_refused_though_the_command_has_found_the_servers_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Their addresses are set then, as those of servers elsewhere are, on which any number may run."""
    monkeypatch.setenv("DATABASE_URL", address)
    monkeypatch.setenv("RABBITMQ_URL", "amqp://any")
    monkeypatch.setattr(services, "running", lambda folder: object())
    monkeypatch.setattr(services, "environment", lambda servers: {"DATABASE_URL": "postgresql://of-the-folder"})
    monkeypatch.setattr(up, "_run", lambda *_, **how: began.append(how["private"]))
    began: list[bool] = []

    def start() -> None:
        up.run(processes=1, threads=1, with_sandbox=False, folder=tmp_path, say=print)

    with alone(tmp_path):
        if "elsewhere" in address:
            start()
        else:
            with pytest.raises(BadInput, match="runs in this folder already"):
                start()
    start()
    assert began == ([False, False] if "elsewhere" in address else [True])


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
