"""Three phases of ten steps each, in threads and on the event loop."""

from __future__ import annotations

import asyncio

from pipeline import Job, Workflow

STEPS = 10
in_steps = Workflow("steps")
in_later_steps = Workflow("steps-loop")


def ten(job: Job) -> None:
    for number in range(STEPS):
        job.step(f"step {number}", int, number)


async def ten_later(job: Job) -> None:
    for number in range(STEPS):
        await job.step(f"step {number}", asyncio.sleep, 0, number)


for name in ("one", "two", "three"):
    in_steps.phase(name)(ten)
    in_later_steps.phase(name)(ten_later)
