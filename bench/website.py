"""Is the fetch phase bound by its pool, or by the engine? Slow sites (one second each) against pool / 1 s."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.lab import ROOT, cli, database, one, until, workers
from pipeline.dev import services

SITES, POOL = 200, 10


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
    ):
        from sandbox import running_sandbox

        with running_sandbox() as sandbox:
            os.environ.update(
                services.environment(servers),
                PYTHONPATH=str(ROOT),
                PIPELINE_LOG_LEVEL="ERROR",
                PIPELINE_SANDBOX_URL=sandbox.url,
                PIPELINE_WEBSITE_RESPECT_ROBOTS="false",
            )
            sandbox.add_fault(match="/sites/", delay=1.0)
            cli("migrate")
            print(f"{SITES} sites of one second each, pool {POOL}: {measure(sandbox.url):.2f} × the pool's own pace")


def measure(base: str) -> float:
    """Sites a second of the fetch phase, divided by pool / 1 s."""
    from pipeline import submit_many

    submit_many(None, "website", [{"url": f"{base}/sites/{n}/"} for n in range(1, SITES + 1)])
    with database() as db, workers():
        until(lambda: one(db, "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL") == 0)
        span = float(
            one(
                db,
                "SELECT extract(epoch FROM max(finished_at) - min(started_at)) "
                "FROM pipeline.attempts WHERE phase = 'website-analysis'",
            )
        )
    return SITES / span / POOL


if __name__ == "__main__":
    main()
