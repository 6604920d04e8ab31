"""The workflow that the faults hit: three phases, each of which leaves one row in the ledger, or the engine erred."""

from __future__ import annotations

import time

from sqlalchemy import Connection, text

from pipeline import Backoff, Done, Job, Workflow, settings
from pipeline.guards.cache import Cache

LEDGER = """CREATE TABLE IF NOT EXISTS chaos_ledger (
    id bigserial PRIMARY KEY, job_id uuid NOT NULL, phase text NOT NULL, fence bigint NOT NULL)"""
WRITE = text("INSERT INTO chaos_ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)")
SCRATCH = b"x" * 16384
# The faults come far more often than in life: a job that is hit ten times here is no poison pill.
LIMITS = {"pool": None, "max_attempts": 10, "max_crashes": 10, "backoff": Backoff((1.0, 2.0))}

chaos = Workflow("chaos")


def cache() -> Cache:
    """In a folder of its own, so that its disk alone can be full."""
    return Cache(settings.get().temp_folder.parent / "cache", ttl=600, max_bytes=1 << 20)


def work(job: Job) -> Done:
    """Outside work first (a while, a file in the temp folder, the cache), the database effect last."""
    (job.tmp / "scratch").write_bytes(SCRATCH)
    if job.phase == "second":
        cache().set(str(job.body["n"]), "x" * 1000)
    time.sleep(float(job.body["seconds"][job.phase]))

    def write(connection: Connection) -> None:
        connection.execute(WRITE, {"job": job.id, "phase": job.phase, "fence": job.fence})

    return Done(result={"fence": job.fence}, write=write)


first = chaos.phase("first", **LIMITS)(work)
second = chaos.phase("second", **LIMITS)(work)
third = chaos.phase("third", **LIMITS)(work)
