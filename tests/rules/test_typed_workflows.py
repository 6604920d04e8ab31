"""mypy and pyright know the body, the phases and the results of a typed workflow, and refuse what is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import BaseModel

from pipeline import Job, Permanent, Workflow
from pipeline.declare.job import as_done, perform
from tests.place import ROOT

PREAMBLE = """
import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session
from typing_extensions import TypedDict

from pipeline import AsyncJobHandle, Done, Job, JobHandle, JobStatus, Workflow, job


class Audit(BaseModel):
    customer: str


class Report(BaseModel):
    pages: int


@dataclass
class Row:
    id: UUID


class Order(TypedDict):
    number: int


audit = Workflow("audit", body=Audit, result=Report)
rows = Workflow("rows", body=Row)
typed_orders = Workflow("orders", body=Order)
plain = Workflow("plain")

async def fetch(url: str, *, depth: int = 1) -> list[str]:
    return [url] * depth


def charge(amount: int) -> float:
    return float(amount)


class Card:
    def charge(self, amount: int, *, idempotency_key: str) -> bytes:
        return b""
"""

ACCEPTED = (
    PREAMBLE
    + """
@audit.phase
async def crawl(job: Job[Audit]) -> list[str]:
    assert_type(job.body, Audit)
    return [job.body.customer]


@audit.phase(pool=3, time_limit=5)
def publish(job: Job[Audit], crawl: list[str]) -> Done[Report]:
    return Done(Report(pages=len(crawl)), write=[])


@plain.phase
def free(job: Job) -> dict[str, int]:
    assert_type(job.body, dict[str, Any])
    return {"n": 1}


@typed_orders.phase
def pick(job: Job[Order]) -> None:
    assert_type(job.body["number"], int)


def use(session: Session) -> None:
    assert_type(publish(Job(Audit(customer="a")), ["b"]), Done[Report])
    assert_type(audit.submit(Audit(customer="a"), session=session, priority=3), JobHandle[Report])
    assert_type(audit.submit(Audit(customer="a")).result(timeout=30), Report)
    assert_type([one.result() for one in audit.submit_many([Audit(customer="a")])], list[Report])
    assert_type(audit.job(UUID(int=1)).result(), Report)
    assert_type([seen for seen in audit.job(UUID(int=1)).watch()], list[JobStatus])
    assert_type(job(UUID(int=1)).result(), Any)
    anything: JobHandle[object] = audit.job(UUID(int=1))
    rows.submit(Row(UUID(int=1)))
    typed_orders.submit({"number": 1})
    plain.submit({"anything": 1})
    plain.submit()


async def wait(session: AsyncSession) -> None:
    handle = await audit.submit(Audit(customer="a"), session=session)
    assert_type(handle, AsyncJobHandle[Report])
    assert_type(await handle.result(timeout=30), Report)
    assert_type(await audit.job(UUID(int=1)).aio.result(), Report)
    assert_type([seen async for seen in handle.watch()], list[JobStatus])
    assert_type(await (await audit.submit_many([Audit(customer="a")], session=session))[0].result(), Report)


async def steps(job: Job) -> None:
    assert_type(await job.step("a", fetch, "x", depth=2), list[str])
    assert_type(await job.step("b", asyncio.to_thread, charge, 3), float)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(job.step("c", fetch, "x"))
    assert_type(task.result(), list[str])
    pages = await asyncio.gather(job.step("d", fetch, "x"), job.step("e", fetch, "y"))
    assert_type(pages[1], list[str])


def plain_steps(job: Job) -> None:
    assert_type(job.step("a", charge, 100), float)
    assert_type(job.step("b", Card().charge, 100, idempotency_key=job.step_key("b")), bytes)
"""
)

REFUSED = (
    PREAMBLE
    + """
audit.submit(Row(UUID(int=1)))  # wrong
audit.submit(Audit(customer="a"), prioritty=3)  # wrong
audit.submit(Audit(customer="a"), priority="3")  # wrong
audit.submit_many([Row(UUID(int=1))])  # wrong
typed_orders.submit({"number": "one"})  # wrong
Workflow("other", body=Audit, order="middle-first")  # wrong
row: Row = audit.submit(Audit(customer="a")).result()  # wrong


async def wait() -> None:
    await audit.submit(Audit(customer="a")).result()  # wrong
    print(audit.job(UUID(int=1)).aio.result().pages)  # wrong


@audit.phase  # wrong
def other_body(job: Job[Row]) -> None: ...


@audit.phase(pool="ten")  # wrong
def wrong_option(job: Job[Audit]) -> None: ...


@audit.phase(pol=10)  # wrong
def unknown_option(job: Job[Audit]) -> None: ...


@audit.phase
def publish(job: Job[Audit]) -> Done[Report]:
    return Done("text")  # wrong


@audit.phase
def look(job: Job[Audit]) -> int:
    return job.body.custommer  # wrong


publish(Job(Row(UUID(int=1))))  # wrong

def wrong_steps(job: Job) -> None:
    job.step("a", charge, "x")  # wrong
    job.step("a", charge)  # wrong
    text: str = job.step("a", charge, 1)  # wrong
"""
)

Check = Callable[[Path], dict[str, set[int]]]


def by_mypy(folder: Path) -> dict[str, set[int]]:
    """The lines with errors, by file."""
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, sorted(folder.glob("*.py")))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = {}
    for name, line in re.findall(r"(\w+)\.py:(\d+): error", done.stdout):
        found.setdefault(name, set()).add(int(line))
    return found


def by_pyright(folder: Path) -> dict[str, set[int]]:
    """The same, by pyright's rules."""
    settings = {"include": [str(folder)], "typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = {}
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            found.setdefault(Path(one["file"]).stem, set()).add(one["range"]["start"]["line"] + 1)
    return found


@pytest.mark.timeout(900)  # without script/test's cache mypy reads SQLAlchemy and psycopg first
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_a_type_checker_accepts_what_is_right_and_refuses_what_is_not(check: Check, tmp_path: Path) -> None:
    """A wrong body, option, result or field is an error at its line, and nothing else is one."""
    (tmp_path / "accepted.py").write_text(ACCEPTED)
    (tmp_path / "refused.py").write_text(REFUSED)
    wrong = {number for number, line in enumerate(REFUSED.splitlines(), 1) if line.endswith("# wrong")}
    assert check(tmp_path) == {"refused": wrong}


class Wish(BaseModel):
    left: int


def named() -> Workflow[Wish, int]:
    return Workflow(f"typed-{uuid4().hex[:12]}", body=Wish, result=int)


def test_a_phase_takes_the_results_of_earlier_ones_by_their_names() -> None:
    """Also of one with dashes; an argument with a default may go without."""
    workflow = named()

    @workflow.phase("look-up")
    def find(job: Job[Wish]) -> int:
        return 3

    @workflow.phase
    def add(job: Job[Wish], look_up: int, more: int = 4) -> int:
        return look_up + job.body.left + more

    [_, declared] = workflow.phases
    job = Job(Wish(left=1), results={"look-up": 3})
    assert as_done(perform(declared, job)).result == 8
    assert add(job, 3, more=0) == 4


def test_an_argument_that_is_no_earlier_phase_is_refused_at_declaration() -> None:
    """With the names that there are: a typing mistake would else fail every job."""
    workflow = named()

    @workflow.phase
    def crawl(job: Job[Wish]) -> list[str]:
        return []

    with pytest.raises(TypeError, match=r"takes 'crawls', which is no earlier phase .* its earlier phases: crawl$"):
        workflow.phase("look")(lambda job, crawls: None)


def test_a_result_that_is_missing_or_of_another_type_fails_the_job_with_its_name() -> None:
    """None is one, if the annotation says so."""
    workflow = named()

    @workflow.phase
    def crawl(job: Job[Wish]) -> list[str]:
        return []

    @workflow.phase
    def strict(job: Job[Wish], crawl: list[str]) -> None: ...

    @workflow.phase
    def lenient(job: Job[Wish], crawl: list[str] | None) -> None:
        assert crawl is None

    _, strictly, leniently = workflow.phases
    with pytest.raises(Permanent, match="takes the result of crawl, which has returned nothing"):
        perform(strictly, Job(Wish(left=1)))
    with pytest.raises(Permanent, match="takes the result of crawl, which returned what does not fit: 0: Input"):
        perform(strictly, Job(Wish(left=1), results={"crawl": [3]}))
    perform(leniently, Job(Wish(left=1)))


@pytest.mark.parametrize("body", [int, list[int], str])
def test_a_body_is_an_object(body: type) -> None:
    """So that a later version can add to it."""
    with pytest.raises(TypeError, match="body is a pydantic model, a dataclass or a TypedDict, not"):
        Workflow(f"typed-{uuid4().hex[:12]}", body=body)
