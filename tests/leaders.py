"""Processes that lead maintenance, or wait to: ``pipeline relay`` for real, killed by their number."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

from tests.place import ROOT, Place

LEADER = """SELECT w.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pipeline.workers w ON a.application_name = 'pipeline maintenance ' || w.no
    WHERE a.datname = current_database() AND l.granted AND l.relation = 'pipeline.maintenance_leader'::regclass"""
# Seconds are as long as ever; the time of day is off.
AHEAD = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": f"{ROOT / 'chaos' / 'ahead'}:{ROOT}"}


def another_clock() -> list[str]:
    """What a command is started with to be ten minutes ahead of its time. Empty: this machine has no faketime."""
    return ["faketime", "-f", "+600s"] if shutil.which("faketime") else []


def stand_by(place: Place, *before: str) -> subprocess.Popen[bytes]:
    """Start one, and do not wait for it."""
    log = place.folder / f"relay-{place._workers.count}.log"
    environment = {**os.environ, **place.environment(), **(AHEAD if before else {})}
    with log.open("wb") as out:
        command = [*before, sys.executable, "-m", "pipeline.front.cli.main", "relay"]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    place._workers.adopt(process, log)
    return process


def leader(place: Place) -> int | None:
    """The number of the process that leads."""
    row = place.row(LEADER)
    return None if row is None else int(row["pid"])


def kill_leader(place: Place) -> None:
    """At once, whatever it does just now; another one leads when this returns."""
    pid = place.until(lambda: leader(place), what="somebody to lead")
    os.kill(pid, signal.SIGKILL)
    place.until(lambda: leader(place) not in (None, pid), what="another one to lead")
