"""Each phase returns 20 KB, and has what the phases before it returned."""

from __future__ import annotations

from bench.rivals.count import text_of
from pipeline import Job, Workflow

results = Workflow("results")


@results.phase
def one(job: Job) -> dict[str, str]:
    return {"text": text_of(20_000)}


@results.phase
def two(job: Job) -> dict[str, str]:
    assert len(job.results["one"]["text"]) == 20_000
    return {"text": text_of(20_000)}


@results.phase
def three(job: Job) -> dict[str, str]:
    assert len(job.results["two"]["text"]) == 20_000
    return {"text": text_of(20_000)}
