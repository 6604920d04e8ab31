"""Latency: from submit to the third phase's end, alone and at half load; and what workers cost when nothing happens.

It begins when the caller calls, by the caller's clock, which is also the server's: they share a machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import psutil

from bench import lab

ROUNDS = 3
SINGLES = 60
WARM_UP = 10


def measure(jobs_per_s: float, folder: Path, *, seconds: float, idle_seconds: float) -> dict[str, Any]:
    """Ours idle and at half of ``jobs_per_s``; bare Dramatiq's own chain of three beside it, in turns."""
    bare: list[float] = []
    singles: list[float] = []
    for turn in range(ROUNDS):
        bare += bare_singles(folder / "latencies")
        with lab.database() as db, lab.workers() as processes:
            sleep(
                5
            )  # boot, sweeps and send_credits are over: this is the idle state itself, not a guess about an event
            singles += our_singles(db)
            if turn == ROUNDS - 1:
                quiet = idle(db, processes[0].pid, idle_seconds)
                half = at_rate(db, jobs_per_s / 2, seconds)
    return {
        "idle_latency_ms": _percentiles(singles),
        "idle_latency_dramatiq_ms": _percentiles(bare),
        "idle_latency_ratio": round(statistics.median(singles) / statistics.median(bare), 2),
        "half_load_latency_ms": _percentiles(half),
        **quiet,
    }


def our_singles(db: lab.Connection) -> list[float]:
    from pipeline import submit

    found = []
    for n in range(SINGLES + WARM_UP):
        begun = time()
        job = submit(None, "chain", {"n": n})
        lab.until(lambda job=job: lab.one(db, _ENDED, job) is not None, pause=0.003)
        found.append(float(lab.one(db, _ENDED, job)) - begun)
    return found[WARM_UP:]


_ENDED = (
    "SELECT extract(epoch FROM completed_at) FROM pipeline.jobs WHERE id = %s AND completed_at IS NOT NULL /* bench */"
)


def bare_singles(file: Path) -> list[float]:
    """Bare Dramatiq without confirms: the message carries its birth, and the third phase writes down its age."""
    file.write_bytes(b"")
    os.environ.update(PEER="dramatiq", LATENCY_FILE=str(file))
    from_here = "import sys, time; from bench.peers import one\nfor line in sys.stdin: one.send(time.time_ns())"
    command = [sys.executable, "-c", from_here]
    with (
        lab.running(lab.dramatiq("bench.peers")),
        subprocess.Popen(command, cwd=lab.ROOT, stdin=subprocess.PIPE) as sender,
    ):
        assert sender.stdin is not None
        sleep(5)  # as below
        for n in range(SINGLES + WARM_UP):
            sender.stdin.write(b"\n")
            sender.stdin.flush()
            lab.until(lambda n=n: len(file.read_bytes().splitlines()) > n, pause=0.003)
        sender.stdin.close()
    del os.environ["LATENCY_FILE"]
    return [int(line) / 1e9 for line in file.read_bytes().splitlines()[WARM_UP:]]


def at_rate(db: lab.Connection, rate: float, seconds: float) -> list[float]:
    """A steady stream, twenty groups a second."""
    from pipeline import submit_many

    lab.clear(db)
    started, begun = monotonic(), {}
    while (age := monotonic() - started) < seconds:
        due = int(age * rate) - len(begun)
        if due > 0:
            now = time()
            begun |= dict.fromkeys(submit_many(None, "chain", [lab.BODY] * due), now)
        sleep(0.05)
    lab.until(lambda: lab.all_done(db))
    rows = db.execute("SELECT id, extract(epoch FROM completed_at) FROM pipeline.jobs /* bench */").fetchall()
    return [float(ended) - begun[job] for job, ended in rows]


def idle(db: lab.Connection, pid: int, seconds: float) -> dict[str, Any]:
    sleep(25)  # the relay looks ever less often after the last job: this is the steady state
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    before, cpu, started = lab.statements(db), _cpu(family), monotonic()
    sleep(seconds)
    took = monotonic() - started
    return {
        "idle_queries_per_s_per_process": round((lab.statements(db) - before) / took / lab.PROCESSES, 3),
        "idle_cpu_percent_per_process": round(100 * (_cpu(family) - cpu) / took / lab.PROCESSES, 2),
    }


def _cpu(family: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in family)


def _percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50": round(1000 * statistics.median(ordered), 1),
        "p99": round(1000 * ordered[int(0.99 * (len(ordered) - 1))], 1),
    }
