"""As many workflows of three empty phases as ``BENCH_WORKFLOWS`` says."""

from __future__ import annotations

import os

from pipeline import Job, Workflow


def work(job: Job) -> None:
    return None


def names(count: int) -> list[str]:
    return [f"flow-{n}" for n in range(1, count + 1)]


for _name in names(int(os.environ.get("BENCH_WORKFLOWS", "0"))):
    _flow = Workflow(_name)
    for _phase in ("one", "two", "three"):
        _flow.phase(_phase)(work)
