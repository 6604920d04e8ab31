"""Throughput: jobs of three empty phases, queued beforehand, then worked off; all systems in turn, in rounds."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

from bench import lab

RIVALS = lab.ROOT / "bench" / ".venv" / "bin"
OURS = "pipeline"
DRAMATIQ = ("dramatiq_confirmed", "dramatiq", "naive")
# The slow ones get fewer jobs: a rate is a rate, and a round should not take minutes.
SHARE = {"procrastinate": 0.2, "dbos": 0.1}


def measure(jobs: int, rounds: int, done: Path) -> dict[str, Any]:
    """Medians, ratios to each peer, and what a phase costs, as the servers count it."""
    systems: dict[str, Callable[[int], float]] = {
        name: lambda n, name=name: dramatiq_round(name, n, done) for name in DRAMATIQ
    }
    systems |= {name: lambda n, rival=rival: rival(n, done) for name, rival in RIVAL_ROUNDS.items() if RIVALS.exists()}
    rates: dict[str, list[float]] = {name: [] for name in (OURS, *systems)}
    costs: list[dict[str, float]] = []
    for number in range(rounds):
        for name, run in systems.items():
            rates[name].append(run(int(jobs * SHARE.get(name, 1))))
        rate, cost = our_round(jobs)
        rates[OURS].append(rate)
        costs.append(cost)
        print(
            f"round {number + 1}: " + ", ".join(f"{name} {values[-1]:.0f}" for name, values in rates.items()),
            flush=True,
        )
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {
        "jobs_per_s": {name: round(value) for name, value in medians.items()},
        "ratio": {name: round(medians[OURS] / medians[name], 2) for name in systems},
        "cost_per_phase": {key: round(statistics.median(cost[key] for cost in costs), 3) for key in costs[0]},
        "rounds": {name: [round(value) for value in values] for name, values in rates.items()},
    }


def our_round(jobs: int, processes: int = lab.PROCESSES) -> tuple[float, dict[str, float]]:
    from pipeline import submit_many

    with lab.database() as db:
        lab.clear(db)
        submit_many(None, "chain", [lab.BODY] * jobs)
        db.execute("CHECKPOINT")
        before, wal = lab.statements(db), lab.wal_end(db)
        with lab.workers(processes):
            lab.until(lambda: lab.all_done(db))
            phases = 3 * jobs
            cost = {
                "statements": (lab.statements(db) - before) / phases,
                "wal_bytes": lab.wal_since(db, wal) / phases,
                "messages": float(lab.one(db, "SELECT sum(send - 1) FROM pipeline.jobs /* bench */")) / phases,
            }
            span = lab.one(
                db, "SELECT extract(epoch FROM max(finished_at) - min(started_at)) FROM pipeline.attempts /* bench */"
            )
    return jobs / float(span), cost


def dramatiq_round(peer: str, jobs: int, done: Path) -> float:
    """Bare Dramatiq, with or without confirms, or with the obvious database around it."""
    with lab.database() as db:
        db.execute("TRUNCATE naive")
        db.execute("INSERT INTO naive SELECT g, 'one', 'pending' FROM generate_series(1, %s) g", (jobs,))
    _run([sys.executable, "-c", f"from bench.peers import fill; fill({jobs})"], PEER="dramatiq")
    os.environ["PEER"] = peer
    return _watch(done, jobs, lab.dramatiq("bench.peers"))


def celery_round(jobs: int, done: Path) -> float:
    _run([str(RIVALS / "python"), "-c", f"from bench.rivals.celery_chain import fill; fill({jobs})"])
    command = [str(RIVALS / "celery"), "-A", "bench.rivals.celery_chain", "worker", "--concurrency", "4", "-l", "ERROR"]
    return _watch(done, jobs, command)


def procrastinate_round(jobs: int, done: Path) -> float:
    _run([str(RIVALS / "python"), "-c", f"from bench.rivals.procrastinate_chain import fill; fill({jobs})"])
    app = "--app=bench.rivals.procrastinate_chain.app"
    command = [str(RIVALS / "procrastinate"), app, "worker", "--concurrency", "8"]
    return _watch(done, jobs, command, command)


def dbos_round(jobs: int, done: Path) -> float:
    command = [str(RIVALS / "python"), "-m", "bench.rivals.dbos_chain", str(jobs // 2)]
    return _watch(done, jobs // 2 * 2, command, command)


RIVAL_ROUNDS = {"celery": celery_round, "procrastinate": procrastinate_round, "dbos": dbos_round}


def _run(command: list[str], **environment: str) -> None:
    subprocess.run(command, check=True, cwd=lab.ROOT, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)


def _watch(done: Path, jobs: int, *commands: list[str]) -> float:
    """From the begin of the first phase to the end of the last: a system may do all first phases before any third."""
    begun = done.with_name(f"{done.name}.begun")
    done.write_bytes(b"")
    begun.unlink(missing_ok=True)
    with lab.running(*commands):
        lab.until(lambda: done.stat().st_size >= jobs, pause=0.01)
        return jobs / (time() - begun.stat().st_mtime)
