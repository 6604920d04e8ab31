"""A site audit, as a user writes it: crawl with steps that are done once, look at the pages, publish. Typed throughout."""

from __future__ import annotations

from urllib.parse import urljoin

from pydantic import BaseModel, HttpUrl
from sqlalchemy import text

from pipeline import Done, Job, Workflow
from tests.actions import record


class Audit(BaseModel):
    customer: str
    url: HttpUrl


class Page(BaseModel):
    url: HttpUrl
    ok: bool


class Report(BaseModel):
    customer: str
    pages: list[Page]


audit = Workflow("site-audit", body=Audit, result=Report)
REPORTS = text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, 'publish', :fence)")


async def fetch(job: Job[Audit], url: str) -> str:
    """What happens outside: it is noted where no transaction can take it back."""
    record(job)
    return f"<a href=/about>about</a> <a href=/offer>offer</a> at {url}"


def links(base: str, page: str) -> list[str]:
    return [urljoin(base, part.split(">")[0]) for part in page.split("href=")[1:]]


@audit.phase
async def crawl(job: Job[Audit]) -> list[str]:
    page = await job.step("fetch", fetch, job, str(job.body.url))  # done once, also after a kill
    if job.fence == 1:
        raise ConnectionError("the second page did not answer")
    return links(str(job.body.url), page)


@audit.phase
def look(job: Job[Audit], crawl: list[str]) -> list[Page]:  # earlier results by their name and type
    return [Page(url=HttpUrl(url), ok="about" in url) for url in crawl]


@audit.phase(isolated=True, memory_limit="2 GiB", time_limit=600)
def publish(job: Job[Audit], look: list[Page]) -> Done[Report]:
    report = Report(customer=job.body.customer, pages=look)
    return Done(report, write=lambda db: db.execute(REPORTS, {"job": job.id, "fence": job.fence}))
