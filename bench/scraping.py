"""Do sick sources slow the healthy ones? 1,000 jobs over 10 sources, 3 of which die for a while, against 700 alone."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import httpx
import psycopg

from bench.lab import ROOT, cli, database, one, until, workers
from pipeline.dev import services
from sandbox import Sandbox, running_sandbox

INTAKES, SOURCES, SICK, ROUNDS = 100, 10, 3, 5
NAMES = [f"market-{n}" for n in range(SOURCES)]
ILL, WELL = NAMES[:SICK], NAMES[SICK:]
BREAKER_SECONDS = 10
SETTINGS = {
    "CACHE_ENABLED": "false",
    "SCRAPE_BREAKER_SECONDS": str(BREAKER_SECONDS),
    "SCRAPE_PROBE_SECONDS": "5",
    "PIPELINE_BACKOFF_SCALE": "0.02",
    "PIPELINE_LOG_LEVEL": "ERROR",
}
SOURCE = """INSERT INTO sources (id, name, adapter, base_url, rate_limit_per_minute)
    VALUES (%s, %s, 'items-api', %s, 6000)"""
DONE = "SELECT count(*) FROM scrape_jobs WHERE status = 'succeeded' AND source_id = ANY (%s)"
# Open for a while yet, and no call on its way: what is counted then and later are calls made while it was open.
AT_REST = """SELECT probes FROM sources s WHERE id = %s AND paused_until > now() + interval '1 second'
    AND NOT EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.status = 'running' AND j.body ->> 'source_id' = s.id)"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
        running_sandbox() as sandbox,
    ):
        os.environ.update(
            services.environment(servers), PYTHONPATH=str(ROOT), PIPELINE_SANDBOX_URL=sandbox.url, **SETTINGS
        )
        cli("migrate")
        figures = measure(sandbox, options.rounds)
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(sandbox: Sandbox, rounds: int) -> dict[str, Any]:
    """Medians of interleaved rounds; a round that does not end as it must raises."""
    with database() as db:
        for name in NAMES:
            db.execute(SOURCE, (name, name, f"{sandbox.url}/market/{name}"))
        with workers():
            one_round(db, sandbox, sick=False)  # everything is warm from here on
            alone, beside, outages = [], [], []
            for _ in range(rounds):
                alone.append(one_round(db, sandbox, sick=False)["seconds"])
                found = one_round(db, sandbox, sick=True)
                beside.append(found.pop("seconds"))
                outages.append(found)
    return {
        "healthy_seconds_alone": [round(value, 2) for value in alone],
        "healthy_seconds_beside_the_sick": [round(value, 2) for value in beside],
        "ratio_of_medians": round(statistics.median(beside) / statistics.median(alone), 3),
        "outages": outages,
        "setup": {"jobs": INTAKES * SOURCES, "sources": SOURCES, "sick": SICK, "breaker_seconds": BREAKER_SECONDS},
    }


def one_round(db: psycopg.Connection[Any], sandbox: Sandbox, *, sick: bool) -> dict[str, Any]:
    """All jobs of a round. Healthy time: from the submit to the end of the last healthy job."""
    db.execute(
        "TRUNCATE pipeline.jobs, pipeline.outbox, pipeline.attempts, pipeline.batches, price_points, valuations,"
        " coin_intakes, source_failures CASCADE"
    )
    sandbox.reset()
    for name in ILL:
        sandbox.add_fault(match=f"/market/{name}/", status=500)
    sandbox.add_fault(match="/market/", delay=0.02)
    submit(db, NAMES if sick else WELL)
    until(lambda: one(db, DONE, WELL) == INTAKES * len(WELL), 120)
    span = "SELECT extract(epoch FROM max(completed_at) - min(created_at)) FROM scrape_jobs WHERE source_id = ANY (%s)"
    seconds = float(one(db, span, WELL))
    outage = recovered(db, sandbox) if sick else {}
    until(lambda: one(db, "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL") == 0, 120)
    return {"seconds": seconds, **outage}


def submit(db: psycopg.Connection[Any], sources: list[str]) -> None:
    """One transaction, coin by coin, so that sick and healthy jobs stand in the queue side by side."""
    with db.transaction():
        db.execute(
            """WITH coins AS (
                INSERT INTO coin_intakes (year, mintmark, denomination, series, title)
                SELECT 1800 + g, 'S', 'cent', 'Lincoln', 'coin ' || g FROM generate_series(1, %s) g RETURNING id)
            SELECT scrape_collect(id, %s) FROM coins""",
            (INTAKES, sources),
        )


def recovered(db: psycopg.Connection[Any], sandbox: Sandbox) -> dict[str, Any]:
    """Count the calls of an open breaker, heal the sources, and see that nobody paid for the outage."""
    before = [at_rest(db, sandbox, name) for name in ILL]
    goals = [probes + 2 for _, probes in before]
    reached = "SELECT count(*) FROM sources s JOIN unnest(%s::text[], %s::int[]) g(id, n) USING (id) WHERE probes >= n"
    until(lambda: one(db, reached, ILL, goals) == SICK, 120)
    after = [at_rest(db, sandbox, name) for name in ILL]
    made, probed = (sum(row[column] for row in after) - sum(row[column] for row in before) for column in (0, 1))
    httpx.delete(f"{sandbox.url}/_faults").raise_for_status()
    until(lambda: one(db, DONE, NAMES) == INTAKES * SOURCES, 120)
    spent = one(db, "SELECT sum(attempts + crashes) FROM pipeline.jobs WHERE workflow = 'scrape'")
    assert (made, spent) == (probed, 0), f"{made} calls for {probed} probes; {spent} executions spent"
    return {"calls_while_open": made, "probes": probed, "executions_spent": spent, "succeeded": INTAKES * SOURCES}


def at_rest(db: psycopg.Connection[Any], sandbox: Sandbox, name: str) -> tuple[int, int]:
    """Calls to a sick source and its probes, at a moment when its breaker is open."""
    found: list[tuple[int, int]] = []

    def look() -> bool:
        probes, calls = one(db, AT_REST, name), sandbox.stats()["paths"].get(f"/market/{name}/api/items", 0)
        if probes is not None and one(db, AT_REST, name) == probes:
            found.append((calls, probes))
        return bool(found)

    until(look, 120)
    return found[0]


if __name__ == "__main__":
    main()
