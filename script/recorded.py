"""The workflow that `script/pictures` kills: eight pages, a second each, every one a step."""

from __future__ import annotations

from time import sleep

from pipeline import Job, Workflow

reports = Workflow("report", result=str)


def page(number: int) -> str:
    sleep(1)
    return f"page {number}"


@reports.phase
def render(job: Job) -> int:
    return len([job.step(f"page-{number}", page, number) for number in range(1, 9)])


@reports.phase
def send(job: Job, render: int) -> str:
    return f"{render} pages sent to {job.body['customer']}"
