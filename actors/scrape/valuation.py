"""Phase valuation: what the coin is worth by everything known about it. Can be run again at will."""

from __future__ import annotations

from actors.scrape.store import save_value
from pipeline import Done, Job, Permanent


def valuation(job: Job) -> Done:
    """Compute and keep the intake's one valuation, in the transaction that ends the phase."""
    intake_id = job.body.get("intake_id")
    if not isinstance(intake_id, str):
        raise Permanent('the job needs {"intake_id": "…"}')
    if not job.read("select 1 from coin_intakes where id = :intake", intake=intake_id):
        raise Permanent(f"there is no coin intake {intake_id!r}")
    return Done(write=save_value(intake_id))
