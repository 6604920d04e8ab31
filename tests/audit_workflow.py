"""The example of docs and README in one piece: crawl, look at every page in parallel, ask a person, publish; every Monday,
and for each customer.

Loaded by the workers of tests/flow/test_the_example.py. What stands before it holds its functions where the test kills them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from urllib.parse import urljoin

from pydantic import BaseModel, HttpUrl
from sqlalchemy import Column, MetaData, Table, Text

from pipeline import Children, Done, Ends, Job, Permanent, Workflow


class Visit(BaseModel):
    url: HttpUrl


class Page(BaseModel):
    url: HttpUrl
    title: str


class Approval(BaseModel):
    by: str


class Report(BaseModel):
    found: list[str]


REPORTS = Table("reports", MetaData(), Column("customer", Text), Column("found", Text))
PAGES = 30


def reach(what: str) -> None:
    """Note that this was called, and stay here for as long as the test wants it."""
    folder = Path(os.environ["TEST_RECORD"]).parent
    handle = os.open(folder / "reached", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{what}\n".encode())
    os.close(handle)
    while (folder / f"hold-{what}").exists():
        time.sleep(0.01)


async def fetch(url: str) -> str:
    reach("fetch")
    if "broken" in url:
        raise Permanent("no such site")
    return f"{url}\n" + "\n".join(f"href={'gone' if n % 10 == 9 else 'page'}/{n}" for n in range(PAGES))


def links(page: str) -> list[str]:
    url, *lines = page.split("\n")
    return [urljoin(url, line.removeprefix("href=")) for line in lines]


def render(look: Iterable[object]) -> Report:
    assert isinstance(look, Ends)
    reach("render")
    return Report(found=[end.result.title if end.ok else end.status for end in look])


page_audit = Workflow("audit-page", body=Visit)


@page_audit.phase
def visit(job: Job[Visit]) -> Page:
    reach("visit")
    if "gone" in str(job.body.url):
        raise Permanent("404")
    return Page(url=job.body.url, title=str(job.body.url.path))


class Audit(BaseModel):
    customer: str
    url: HttpUrl


audit = Workflow("audit", body=Audit, result=Report, key="customer", per_key=2)  # two under way; customers take turns


@audit.phase(rate="200/s")  # no pool: thousands in flight in one process
async def crawl(job: Job[Audit]) -> list[str]:
    page = await job.step("fetch", fetch, str(job.body.url))  # done once, remembered by name, also after a kill
    return links(page)


@audit.phase
def look(job: Job[Audit], crawl: list[str]) -> Children[Page]:  # earlier results by their name and type
    return job.spawn(page_audit, [{"url": u} for u in crawl])  # the job waits and holds nothing


@audit.phase
def approve(job: Job[Audit], look: Ends[Page]) -> Approval:  # a lazy sequence, in order
    if all(page.ok for page in look):
        return job.goto(publish)  # branch
    return job.wait_for("approved", timeout=timedelta(days=7))  # POST /v1/jobs/{id}/events/approved, SQL or CLI


@audit.phase(isolated=True, memory_limit="2 GiB", time_limit=600)
def publish(job: Job[Audit], look: Ends[Page]) -> Done[Report]:
    report = render(look)
    row = {"customer": job.body.customer, "found": " ".join(report.found)}
    return Done(report, write=lambda db: db.execute(REPORTS.insert(), row))  # commits with the job, or not at all


tell_the_customer = Workflow("tell-the-customer")


@tell_the_customer.phase
def tell(job: Job) -> str:
    reach("told")
    return f"{job.body['body']['customer']}: {job.body['error']}"


audit.on_failure(tell_the_customer)  # a workflow, submitted by the failing transition itself, once
audit.schedule(
    "weekly",
    "0 7 * * 1",
    timezone="Europe/Paris",
    body=Audit(customer="c-18", url=HttpUrl("http://example.org/")),
)
