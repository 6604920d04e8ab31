"""Measure this project against its peers, interleaved in one run, on private servers. Ratios first."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg

from pipeline import services

ROOT = Path(__file__).parent.parent
PROCESSES, THREADS = 2, 16
PEERS = ("dramatiq", "dramatiq_confirmed", "naive")


def main() -> None:
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer jobs and rounds; ends within five minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    jobs, rounds = (2000, 3) if options.quick else (5000, 5)
    with tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder, \
         services.private_servers(Path(folder), remove=True) as servers:  # fmt: skip
        os.environ.update(services.environment(servers), PYTHONPATH=str(ROOT), PIPELINE_WORKFLOWS="bench.chain",
                          PIPELINE_LOG_LEVEL="ERROR", DONE_FILE=f"{folder}/done")  # fmt: skip
        figures = measure(jobs, rounds, Path(folder))
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(jobs: int, rounds: int, folder: Path) -> dict[str, Any]:
    """All measurements, each as a plain figure."""
    with database() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        db.execute("CREATE TABLE naive (id int PRIMARY KEY, phase text, status text, locked_at timestamptz)")
    _cli("migrate")
    rates: dict[str, list[float]] = {name: [] for name in ("pipeline", *PEERS)}
    costs: list[dict[str, float]] = []
    for _ in range(rounds):
        for peer in PEERS:
            rates[peer].append(peer_round(peer, jobs, folder / "done"))
        rate, cost = our_round(jobs)
        rates["pipeline"].append(rate)
        costs.append(cost)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {
        "ratio": {peer: round(medians["pipeline"] / medians[peer], 2) for peer in PEERS},
        "jobs_per_s": {name: round(value) for name, value in medians.items()},
        "cost_per_phase": {key: round(statistics.median(c[key] for c in costs), 3) for key in costs[0]},
        **idle(),
        "setup": {"jobs": jobs, "rounds": rounds, "processes": PROCESSES, "threads": THREADS},
    }


def our_round(jobs: int) -> tuple[float, dict[str, float]]:
    """Queued beforehand, then worked off. Counts statements and WAL bytes as PostgreSQL itself counts them."""
    with database() as db:
        db.execute("TRUNCATE jobs, outbox, attempts CASCADE")
        from pipeline import submit_many

        submit_many(None, "chain", [{"text": "x" * 180}] * jobs)
        db.execute("CHECKPOINT")
        before, wal, started = _statements(db), _wal(db), monotonic()
        with workers("pipeline.actors"):
            _until(lambda: _one(db, "SELECT count(*) FROM outbox") == 0 and
                   _one(db, "SELECT count(*) FROM jobs WHERE completed_at IS NULL") == 0)  # fmt: skip
            span = _one(db, "SELECT extract(epoch FROM max(finished_at) - min(started_at)) FROM attempts")
            cost = {"statements": (_statements(db) - before) / (3 * jobs), "wal_bytes": (_wal(db) - wal) / (3 * jobs)}
        assert monotonic() > started
    return jobs / float(span), cost


def peer_round(peer: str, jobs: int, done: Path) -> float:
    """The same for a peer: its messages are queued beforehand too."""
    done.write_bytes(b"")
    os.environ["PEER"] = peer
    with database() as db:
        db.execute("TRUNCATE naive")
        db.execute("INSERT INTO naive SELECT g, 'one', 'pending' FROM generate_series(1, %s) g", (jobs,))
    fill = "import sys; from bench.peers import one\nfor n in range(1, int(sys.argv[1]) + 1): one.send(n)"
    subprocess.run(
        [sys.executable, "-c", fill, str(jobs)], check=True, cwd=ROOT, env={**os.environ, "PEER": "dramatiq"}
    )
    with workers("bench.peers"):
        _until(lambda: done.stat().st_size > 0)
        first, started = done.stat().st_size, monotonic()
        _until(lambda: done.stat().st_size >= jobs)
        return (jobs - first) / (monotonic() - started)


def idle() -> dict[str, Any]:
    """Latency of single jobs and queries a second when there is nothing to do."""
    from pipeline import submit

    with database() as db, workers("pipeline.actors"):
        _cli("migrate")
        sleep(5)
        latencies = []
        for n in range(40):
            job = submit(None, "chain", {"n": n})
            _until(
                lambda job=job: _one(db, "SELECT completed_at FROM jobs WHERE id = %s", job) is not None, pause=0.005
            )
            latencies.append(
                float(_one(db, "SELECT extract(epoch FROM completed_at - created_at) FROM jobs WHERE id = %s", job))
            )
        sleep(2)
        before, started = _statements(db, ours=True), monotonic()
        sleep(60)
        queries = (_statements(db, ours=True) - before) / (monotonic() - started) / PROCESSES
    ordered = sorted(latencies[5:])
    return {
        "idle_latency_ms": {"p50": round(1000 * statistics.median(ordered), 1), "p99": round(1000 * ordered[-1], 1)},
        "idle_queries_per_s_per_process": round(queries, 3),
    }


@contextmanager
def workers(module: str) -> Iterator[None]:
    command = [sys.executable, "-m", "dramatiq", module, "--processes", str(PROCESSES), "--threads", str(THREADS)]
    process = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def database() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, application_name="bench") as connection:
        yield connection


def _statements(db: psycopg.Connection, *, ours: bool = False) -> int:
    """Statements that reached the server, BEGIN and COMMIT left out; the benchmark's own are not counted."""
    own = (
        "AND query NOT LIKE '%%jobs WHERE%%' AND query NOT LIKE '%%FROM outbox'"
        if ours
        else "AND query LIKE '%%pipeline_%%'"
    )
    return int(
        _one(db, f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query NOT LIKE '%%pg_stat%%' {own}")
    )


def _wal(db: psycopg.Connection) -> int:
    """WAL bytes without full-page images, which depend on checkpoints and not on us."""
    return int(
        _one(db, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') - (SELECT wal_fpi * 8192 FROM pg_stat_wal)")
    )


def _one(db: psycopg.Connection, statement: str, *values: Any) -> Any:
    row = db.execute(statement, values).fetchone()
    return row[0] if row else None


def _until(condition: Callable[[], bool], timeout: float = 300, pause: float = 0.05) -> None:
    deadline = monotonic() + timeout
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError("the benchmark's jobs did not end")
        sleep(pause)


def _cli(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pipeline.front.cli", *words], check=True, cwd=ROOT, capture_output=True)


if __name__ == "__main__":
    main()
