"""Three empty phases, run in each of the ways in which a phase can be."""

from __future__ import annotations

from pipeline import Job, Workflow

threads = Workflow("threads")
isolated = Workflow("isolated")


def nothing(job: Job) -> None:
    return None


for name in ("one", "two", "three"):
    threads.phase(name)(nothing)
    isolated.phase(name, isolated=True)(nothing)
