"""Code for type checkers: what they accept, and what they refuse, marked at its line."""

from __future__ import annotations

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

# The user's view, as far as it is there: what is marked is refused, all else is accepted.
EXAMPLE = """
from datetime import timedelta
from typing import assert_type

from pydantic import BaseModel, HttpUrl
from sqlalchemy import Column, MetaData, Table, Text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from pipeline import Done, Job, Workflow

REPORTS = Table("reports", MetaData(), Column("customer", Text))


class Audit(BaseModel):
    customer: str
    url: HttpUrl


class Page(BaseModel):
    url: str
    ok: bool


class Report(BaseModel):
    pages: list[Page]


async def fetch(url: str) -> str:
    return url


def links(page: str) -> list[str]:
    return [page]


def render(look: list[Page]) -> Report:
    return Report(pages=look)


audit = Workflow("audit", body=Audit, result=Report)


@audit.phase
async def crawl(job: Job[Audit]) -> list[str]:
    page = await job.step("fetch", fetch, str(job.body.url))
    assert_type(page, str)
    return links(page)


@audit.phase
def look(job: Job[Audit], crawl: list[str]) -> list[Page]:
    return [Page(url=url, ok=True) for url in crawl]


@audit.phase(isolated=True, memory_limit="2 GiB", time_limit=600)
def publish(job: Job[Audit], look: list[Page]) -> Done[Report]:
    report = render(look)
    return Done(report, write=lambda db: db.execute(REPORTS.insert(), {"customer": job.body.customer}))


def use(session: Session, body: Audit, page: Page) -> None:
    job = audit.submit(body, session=session, unique="open", tags=["vip"], expires=timedelta(hours=2))
    assert_type(job.result(timeout=30), Report)
    audit.submit(body, delay=timedelta(hours=1))
    audit.submit(page, session=session)  # wrong
    audit.submit({"customer": "c-17"}, session=session)  # wrong
    audit.submit(body, session=session, unique="opened")  # wrong
    audit.submit(body, session=session, tags=[1])  # wrong
    audit.submit(body, session=session, expires=7200)  # wrong
    audit.submit(body, session=session, debounce=5)  # wrong
    audit.submit(body, session=session, delay=5)  # wrong
    audit.submit(body, sesion=session)  # wrong
    text: str = job.result(timeout=30)  # wrong
    job.result(timeot=30)  # wrong
    print(job.result().page)  # wrong


async def use_async(session: AsyncSession, body: Audit) -> None:
    job = await audit.submit(body, session=session, unique="open")
    assert_type(await job.result(), Report)
    text: str = await job.result()  # wrong
    await audit.submit({"customer": "c-17"}, session=session)  # wrong


@audit.phase
async def wrong_steps(job: Job[Audit]) -> str:
    await job.step("fetch", fetch, job.body.url)  # wrong
    await job.step("fetch", fetch)  # wrong
    return await job.step("links", links, "a")  # wrong


@audit.phase(isolated="yes")  # wrong
def wrong_option(job: Job[Audit]) -> None: ...


@audit.phase
def wrong_write(job: Job[Audit]) -> Done[Report]:
    return Done(Report(pages=[]), write=3)  # wrong
"""
