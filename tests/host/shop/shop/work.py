"""What the shop gives to the engine: plan a print job, then bill it."""

from __future__ import annotations

from pipeline import Done, Job, Workflow
from sqlalchemy import insert

from db.models import Invoice

printing = Workflow("printing")


@printing.phase
def plan_sheets(job: Job) -> dict[str, int]:
    found = job.read("SELECT copies, billing.price(copies) AS cents FROM jobs WHERE id = :id", id=job.body["print_job"])
    return {"cents": int(found[0]["cents"])}


@printing.phase
def bill(job: Job) -> Done:
    invoice = {"job_id": job.body["print_job"], "cents": job.results["plan_sheets"]["cents"]}
    return Done(invoice, write=lambda connection: connection.execute(insert(Invoice).values(**invoice)))
