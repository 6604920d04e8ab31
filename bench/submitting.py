"""Submitting: many jobs at once against a plain batched INSERT of the same rows into a table like ours.

The plain one is measured twice: with a list of bodies, as one would write it, and with the text that ours sends, which
psycopg passes on three times as fast.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

import orjson

from bench import lab
from pipeline.journey.submit import as_array

GROUP = 5000
COLUMNS = "workflow, trace_id, span_id, priority, body, phase, max_attempts"
PLAIN = f"""INSERT INTO plain ({COLUMNS})
    SELECT 'chain', repeat('0', 31) || '1', repeat('0', 15) || '1', 0, b, 'one', 3 FROM unnest(%s::jsonb[]) b"""


def measure(jobs: int, rounds: int) -> dict[str, Any]:
    with lab.database() as db:
        db.execute("CREATE TABLE IF NOT EXISTS plain (LIKE pipeline.jobs INCLUDING ALL)")
        ours, plain, text = [], [], []
        for _ in range(rounds):
            lab.clear(db)
            plain.append(_plain(db, jobs, list))
            text.append(_plain(db, jobs, as_array))
            db.execute("CHECKPOINT")
            ours.append(_ours(jobs))
        lab.clear(db)
        db.execute("DROP TABLE plain")
    return {
        "submit_jobs_per_s": {
            "pipeline": round(statistics.median(ours)),
            "plain_insert": round(statistics.median(plain)),
            "plain_insert_as_text": round(statistics.median(text)),
        },
        "submit_ratio": round(statistics.median(ours) / statistics.median(plain), 2),
        "submit_ratio_as_text": round(statistics.median(ours) / statistics.median(text), 2),
    }


def _ours(jobs: int) -> float:
    from pipeline import submit_many

    started = monotonic()
    for _ in range(jobs // GROUP):
        submit_many(None, "chain", [lab.BODY] * GROUP)
    return jobs / (monotonic() - started)


def _plain(db: lab.Connection, jobs: int, form: Callable[[Iterable[str]], object]) -> float:
    db.execute("TRUNCATE plain")
    db.execute("CHECKPOINT")
    started = monotonic()
    for _ in range(jobs // GROUP):
        db.execute(PLAIN, (form(orjson.dumps(lab.BODY).decode() for _ in range(GROUP)),))
    return jobs / (monotonic() - started)
