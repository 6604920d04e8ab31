"""Growth: the pace with a full table, a long history, more processes; and a worker's memory over many jobs."""

from __future__ import annotations

import statistics
from time import monotonic
from typing import Any

import psutil

from bench import lab
from bench.throughput import our_round

FINISHED = """
    INSERT INTO pipeline.jobs (workflow, trace_id, span_id, body, phase, status, max_attempts, completed_at)
    SELECT 'chain', repeat('0', 31) || '1', repeat('0', 15) || '1', '{"text": "old"}', 'three', 'succeeded', 3, now()
    FROM generate_series(1, %s) /* bench */"""
HISTORY = """
    INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, started_at, finished_at, phase, outcome, worker)
    SELECT j.id, f, 1, j.created_at, j.created_at, j.created_at, 'three', 'succeeded', 'old'
    FROM pipeline.jobs j, generate_series(1, 3) f WHERE j.status = 'succeeded' /* bench */"""
WARM_UP = 600
NTH_END = "SELECT finished_at FROM pipeline.attempts WHERE finished_at > %s ORDER BY finished_at OFFSET %s LIMIT 1"


def measure(small: int, large: int, rounds: int) -> dict[str, Any]:
    """The same phases with few and with many pending jobs, in turn; then after as many finished ones.

    Earlier phases go first: these are first phases in both cases, until most of the few are through theirs.
    """
    few, many, phases = [], [], 8 * small // 10
    for _ in range(rounds):
        few.append(paced(small, phases))
        many.append(paced(large, phases))
    return {
        "pending_jobs_per_s": {str(small): round(statistics.median(few)), str(large): round(statistics.median(many))},
        "pending_ratio": round(statistics.median(many) / statistics.median(few), 2),
        "after_finished_jobs_per_s": {
            str(large): round(statistics.median(after_finished(small, large, phases, rounds)))
        },
    }


def paced(pending: int, phases: int) -> float:
    """Jobs a second while ``pending`` wait. Measured by finished phases, three of them a job."""
    with lab.database() as db:
        lab.clear(db)
        _submit(pending)
        db.execute("VACUUM ANALYZE pipeline.jobs")
        db.execute("CHECKPOINT")
        return _pace(db, phases)


def after_finished(small: int, finished: int, phases: int, rounds: int) -> list[float]:
    with lab.database() as db:
        lab.clear(db)
        db.execute(FINISHED, (finished,))
        db.execute(HISTORY)
        db.execute("VACUUM ANALYZE pipeline.jobs, attempts")
        db.execute("CHECKPOINT")
        found = []
        for _ in range(rounds):
            _submit(small)
            found.append(_pace(db, phases))
        return found


def processes(jobs: int) -> dict[str, Any]:
    return {"processes_jobs_per_s": {str(n): round(our_round(jobs, n)[0]) for n in (1, 2, 4)}}


def memory(jobs: int) -> dict[str, Any]:
    """Resident memory of the workers when all their parts have been at work, and as many jobs later.

    A fifth of the jobs go before, and a minute: sweeps and reports come by then, and load what they need.
    """
    with lab.database() as db:
        lab.clear(db)
        with lab.workers() as running:
            started = monotonic()
            _submit(jobs // 5)
            lab.until(lambda: lab.all_done(db) and monotonic() - started > 65, timeout=1800, pause=1)
            early = _resident(running[0].pid)
            _submit(jobs)
            lab.until(lambda: lab.all_done(db), timeout=1800, pause=1)
            late = _resident(running[0].pid)
    return {
        "memory_mb": {"early": round(early / 1e6, 1), "late": round(late / 1e6, 1)},
        "memory_growth_percent": round(100 * (late / early - 1), 2),
        "memory_jobs": jobs,
    }


def _submit(jobs: int) -> None:
    from pipeline import submit_many

    for start in range(0, jobs, 10_000):
        submit_many(None, "chain", [lab.BODY] * min(10_000, jobs - start))


def _pace(db: lab.Connection, phases: int) -> float:
    """Jobs a second by the history's own moments, from the 600th phase on: at full speed by then."""
    before, begun = _phases(db), lab.one(db, "SELECT clock_timestamp()")
    with lab.workers():
        lab.until(lambda: _phases(db) >= before + WARM_UP + phases)
    first, last = (lab.one(db, NTH_END, begun, n) for n in (WARM_UP, WARM_UP + phases))
    return phases / 3 / float((last - first).total_seconds())


def _phases(db: lab.Connection) -> int:
    """Finished phases of this run, by the statistics of inserts: a count of millions of rows would be a load itself."""
    db.execute("SELECT pg_stat_clear_snapshot() /* bench */")
    return int(lab.one(db, "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'attempts' /* bench */"))


def _resident(pid: int) -> int:
    children = psutil.Process(pid).children(recursive=True)
    return sum(child.memory_info().rss for child in children if _threads(child) >= lab.THREADS)


def _threads(process: psutil.Process) -> int:
    return process.num_threads()
