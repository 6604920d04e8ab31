"""The same chain twice: its jobs take turns by a key, and they do not."""

from __future__ import annotations

from pipeline import Job, Workflow

keyed = Workflow("keyed", key="text")
unkeyed = Workflow("unkeyed")


def nothing(job: Job) -> None:
    return None


for _workflow in (keyed, unkeyed):
    for _name in ("one", "two", "three"):
        _workflow.phase(_name)(nothing)
