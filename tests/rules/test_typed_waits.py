"""Events, children and branches as type checkers read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.place import ROOT
from tests.rules.test_type_checkers import Check, by_mypy, by_pyright

# Waits and branches: what is marked is refused, all else is accepted.
WAITS = """
from datetime import timedelta
from typing import assert_type

from pydantic import BaseModel

from pipeline import Children, Done, End, Ends, Job, JobHandle, Workflow, signal


class Audit(BaseModel):
    pages: list[str]


class Visit(BaseModel):
    url: str


class Page(BaseModel):
    title: str


class Approval(BaseModel):
    by: str


visits = Workflow("visits", body=Visit, result=Page)
audit = Workflow("audit", body=Audit, result=str)


@audit.phase
def look(job: Job[Audit]) -> Children[Page]:
    return job.spawn(visits, [Visit(url=url) for url in job.body.pages], policy="all")


@audit.phase
def look_again(job: Job[Audit]) -> Children[Page]:
    children = job.spawn(visits, ({"url": url} for url in job.body.pages))
    assert_type(children, Children[Page])
    return children


@audit.phase
def approve(job: Job[Audit], look: Ends[Page]) -> Approval | None:
    assert_type(look[0], End[Page])
    if all(end.ok for end in look):
        return job.goto(publish)
    return job.wait_for("approved", timeout=timedelta(days=7), default=Approval(by="nobody"))


@audit.phase
async def rest(job: Job[Audit], look: Ends[Page]) -> Done[int]:
    await job.sleep("night", timedelta(hours=8))
    async for end in look:
        assert_type(end.result, Page)
    return Done(1, after=timedelta(hours=1))


@audit.phase
def publish(job: Job[Audit], look: Ends[Page], approve: Approval | None = None) -> str:
    link: str = job.event_link("published", expires=timedelta(days=1), body={"by": "Ada"})
    return job.finish(link) if approve else ", ".join(end.result.title for end in look)


def tell(job: JobHandle[str]) -> None:
    answer = job.signal("approved", {"by": "Ada"})
    if answer == "delivered":
        job.event_link("approved")
    signal(None, job.id, "approved")
    job.signal()  # wrong
    job.event_link("approved", expires=7)  # wrong
    signal(None, "a job", "approved")  # wrong


@audit.phase
def wrong_bodies(job: Job[Audit]) -> Children[Page]:
    return job.spawn(visits, [Audit(pages=[])])  # wrong


@audit.phase
def wrong_body(job: Job[Audit]) -> Children[Page]:
    return job.spawn(visits, Visit(url=""))  # wrong


@audit.phase
def wrong_policy(job: Job[Audit]) -> Children[Page]:
    return job.spawn(visits, [Visit(url="")], policy="some")  # wrong


@audit.phase
def wrong_children(job: Job[Audit]) -> Children[Approval]:
    return job.spawn(visits, [Visit(url="")])  # wrong


@audit.phase
def wrong_wait(job: Job[Audit]) -> Approval:
    return job.wait_for("approved", timeout=7)  # wrong


@audit.phase
def wrong_default(job: Job[Audit]) -> Approval:
    return job.wait_for("approved", default="nobody")  # wrong


@audit.phase
def wrong_sleep(job: Job[Audit]) -> None:
    job.sleep(timedelta(hours=8))  # wrong


@audit.phase
def wrong_after(job: Job[Audit]) -> Done[int]:
    return Done(1, after=3600)  # wrong


@audit.phase
def wrong_goto(job: Job[Audit]) -> int:
    return job.goto(3)  # wrong


@audit.phase
def wrong_finish(job: Job[Audit]) -> int:
    return job.finish("enough")  # wrong


@audit.phase
def wrong_ends(job: Job[Audit], look: Ends[Page]) -> str:
    return look[0].result.name  # wrong
"""

# The workflows that tests/flow/test_waits.py runs, and those of the documentation.
WAITING = {
    "waits_run": (ROOT / "tests/wait_workflows.py").read_text(),
    "example_run": (ROOT / "tests/audit_workflow.py").read_text(),
    **{
        name: next(one.text for one in blocks(ROOT / "docs/howto/waits.md") if one.text.startswith(f"# shop/{name}.py"))
        for name in ("refunds", "reminders", "deciding", "asking")
    },
}


@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_waits_and_branches_have_types(check: Check, tmp_path: Path) -> None:
    """A wrong child, policy, time, default or result is an error at its line, and nothing else is one."""
    for name, code in {"waits": WAITS, **WAITING}.items():
        (tmp_path / f"{name}.py").write_text(code)
    wrong = {number for number, line in enumerate(WAITS.splitlines(), 1) if line.endswith("# wrong")}
    assert check(tmp_path) == {"waits": wrong}
