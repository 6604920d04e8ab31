"""The website workflow against its pools: slow sites (a second each), and how many jobs a second can end at most.

A pool of ten is the workflow's own; ``--pool 200`` asks whether the engine or the cores are the limit then.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep

import psutil

from bench.lab import ROOT, cli, database, one, running, workers
from pipeline.dev import services
from pipeline.dev.services.ports import free_port

SITES, RAMP = 200, 10.0
ENDED = "SELECT count(*) FROM pipeline.jobs WHERE completed_at > %s AND status = 'succeeded' /* bench */"
NOW = "SELECT clock_timestamp() /* bench */"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30.0, help="of steady state")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
    ):
        port = free_port()
        os.environ.update(
            services.environment(servers),
            PYTHONPATH=str(ROOT),
            PIPELINE_LOG_LEVEL="ERROR",
            PIPELINE_SANDBOX_URL=f"http://127.0.0.1:{port}",
            PIPELINE_WEBSITE_RESPECT_ROBOTS="false",
            PIPELINE_WEBSITE_POOL=str(options.pool),
        )
        # A process of its own, as the world is one.
        with running([sys.executable, "-m", "bench.slow_sandbox", str(port)]):
            cli("migrate")
            measure(f"http://127.0.0.1:{port}", options.pool, options.seconds)


def measure(base: str, pool: int, seconds: float) -> None:
    """Jobs a second while more than enough wait; and how busy the cores are, workers, servers and sandbox together."""
    from pipeline import submit_many

    jobs = int(pool * (seconds + 2 * RAMP))
    submit_many(None, "website", [{"url": f"{base}/sites/{n % SITES + 1}/"} for n in range(jobs)])
    with database() as db, workers():
        sleep(RAMP)
        begun, clock = one(db, NOW), monotonic()
        psutil.cpu_percent()
        sleep(seconds)
        rate, busy = int(one(db, ENDED, begun)) / (monotonic() - clock), psutil.cpu_percent()
    print(f"pool {pool}: {rate:.1f} jobs/s of {pool} possible ({rate / pool:.2f}); the cores were {busy:.0f} % busy")


if __name__ == "__main__":
    main()
