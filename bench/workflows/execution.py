"""Three empty phases, run in each of the ways in which a phase can be."""

from __future__ import annotations

from pipeline import Job, Workflow

threads = Workflow("threads")
coroutines = Workflow("coroutines")
isolated = Workflow("isolated")


def nothing(job: Job) -> None:
    return None


async def nothing_either(job: Job) -> None:
    return None


for name in ("one", "two", "three"):
    threads.phase(name)(nothing)
    coroutines.phase(name)(nothing_either)
    isolated.phase(name, isolated=True)(nothing)
