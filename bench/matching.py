"""How good is the matching, and does it keep the limit? ``python -m bench.matching [--run] [--json FILE]``.

Without ``--run``: precision and recall on the sandbox's labelled records. With it: 10,000 records through real
servers and workers at 500 calls a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import httpx

from actors.match.decide import Decision, ProjectSettings
from actors.match.entity_match import judge as judge_task
from actors.match.records import read_record
from actors.match.store import Task
from bench.lab import ROOT, cli, database, one, until, workers
from pipeline.declare.job import Job
from pipeline.dev import services
from sandbox import running_sandbox
from sandbox.wikidata_labelled import Labelled, labelled

SETTINGS = ProjectSettings(languages=("en", "de", "ru", "el", "ja"))
STATEMENTS = """SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query NOT ILIKE '%%pg_stat%%'
    AND query NOT ILIKE ALL (ARRAY['BEGIN%%', 'COMMIT%%', 'ROLLBACK%%', 'SHOW%%', 'SET%%'])"""
RECORDS, RATE, BURST = 10_000, 500, 50


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.matching", description=__doc__)
    parser.add_argument("--run", action="store_true", help="10,000 records end to end instead of the quality")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    with running_sandbox() as sandbox:
        os.environ["PIPELINE_SANDBOX_URL"] = sandbox.url
        figures = end_to_end(sandbox.url) if options.run else quality()
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


def quality() -> dict[str, Any]:
    """Precision: the right share of what was called a match. Recall: the found share of what has an entity."""
    records = labelled()
    with ThreadPoolExecutor(8) as pool:
        decided = list(zip(records, pool.map(judge, records), strict=True))
    matched = [(record, decision) for record, decision in decided if decision.qid]
    right = [record for record, decision in matched if decision.qid == record.answer]
    findable = [record for record in records if record.answer]
    return {
        "records": len(records),
        "precision": round(len(right) / len(matched), 4),
        "recall": round(len(right) / len(findable), 4),
        "verdicts": dict(Counter(decision.verdict for _, decision in decided)),
        "found_by_kind": _by_kind(findable, right),
        "wrong": [f"{r.name} {r.data}: {d.qid}, not {r.answer}" for r, d in matched if d.qid != r.answer],
    }


def judge(record: Labelled) -> Decision:
    """The phase's own search, scores and decision; only its database is left out."""
    task = Task(1, read_record(record.name, record.data), SETTINGS)
    return asyncio.run(judge_task(Job(body={}), task))[1]


def _by_kind(findable: list[Labelled], right: list[Labelled]) -> dict[str, str]:
    found, all_of_kind = Counter(r.kind for r in right), Counter(r.kind for r in findable)
    return {kind: f"{found[kind]}/{n}" for kind, n in all_of_kind.items()}


def end_to_end(sandbox_url: str) -> dict[str, Any]:
    """One call fans out; the workers keep the limit together; every record ends."""
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
    ):
        os.environ.update(
            services.environment(servers),
            PYTHONPATH=str(ROOT),
            PIPELINE_LOG_LEVEL="ERROR",
            WIKIDATA_RATE=str(RATE),
            WIKIDATA_BURST=str(BURST),
        )
        with database() as db:
            db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        cli("migrate")
        project = _project()
        with database() as db:
            before = _calls(db)
            started = monotonic()
            _start(project)
            asked, statements = monotonic() - started, _calls(db) - before
            with workers():
                until(lambda: one(db, "SELECT status FROM projects WHERE id = %s", project) == "COMPLETED", 900)
            taken = monotonic() - started
            counts = one(db, "SELECT counts FROM projects WHERE id = %s", project)
            charged = one(db, "SELECT sum(attempts) FROM pipeline.jobs")
            errors = one(
                db, "SELECT array_agg(DISTINCT left(error, 200)) FROM pipeline.attempts WHERE outcome = 'retried'"
            )
    seen = httpx.get(f"{sandbox_url}/w/_arrivals", timeout=60).json()
    return {
        "records": RECORDS,
        "statements_for_the_jobs": statements,
        "fan_out_seconds": round(asked, 2),
        "seconds": round(taken, 1),
        "calls": len(seen["arrivals"]),
        "calls_per_second": round(len(seen["arrivals"]) / taken),
        "busiest_second": seen["busiest_second"],
        "limit": RATE,
        "bucket": BURST,
        "counts": counts,
        "attempts_charged": int(charged),
        "errors": errors or [],
    }


def _project() -> int:
    from actors.match.entries import add_entries
    from actors.match.projects import create_project
    from pipeline.store import database as flow_database

    known = labelled()
    entries = [{"name": r.name, **r.data} for r in known if r.name] * (RECORDS // len(known) + 2)
    with flow_database.engine().begin() as connection:
        project = create_project(connection, "benchmark")
        add_entries(connection, project, entries[:RECORDS])
    return project


def _start(project: int) -> None:
    from actors.match.projects import start_match
    from pipeline.store import database as flow_database

    with flow_database.engine().begin() as connection:
        start_match(connection, project)


def _calls(db: Any) -> int:
    """Statements that clients sent, as PostgreSQL counts them; what runs inside a statement is not one of them."""
    return int(one(db, STATEMENTS))


if __name__ == "__main__":
    main()
