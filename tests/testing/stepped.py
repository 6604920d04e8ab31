"""A workflow with steps. Each call of a step is a line in a file of the test's."""

from __future__ import annotations

from pathlib import Path

from pipeline import Job, Workflow

stepped = Workflow("kit-stepped")


def capture(path: str, name: str) -> str:
    with Path(path).open("a") as calls:
        calls.write(f"{name}\n")
    return f"captured {name}"


async def settle(path: str) -> str:
    return capture(path, "settle")


@stepped.phase
def pay(job: Job) -> list[str]:
    return [job.step(name, capture, job.body["calls"], name) for name in ("reserve", "capture it")]


@stepped.phase
async def book(job: Job, pay: list[str]) -> list[str]:
    return [*pay, await job.step("settle", settle, job.body["calls"])]
