"""Each phase writes a row in the transaction that ends it."""

from __future__ import annotations

from sqlalchemy import Connection, text

from pipeline import Done, Job, Workflow

INSERT = text("INSERT INTO written (job, phase, note) VALUES (:job, :phase, :note)")
writes = Workflow("writes")


def _row(job: Job) -> Done:
    def write(connection: Connection) -> None:
        connection.execute(INSERT, {"job": str(job.id), "phase": job.phase, "note": job.body["text"]})

    return Done(write=write)


@writes.phase
def one(job: Job) -> Done:
    return _row(job)


@writes.phase
def two(job: Job) -> Done:
    return _row(job)


@writes.phase
def three(job: Job) -> Done:
    return _row(job)
