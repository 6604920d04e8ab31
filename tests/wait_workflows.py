"""Workflows whose jobs wait for time, for people and for other jobs. Loaded by the workers of tests/flow/test_waits.py."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel, HttpUrl
from sqlalchemy import text

from pipeline import Backoff, Children, Done, Ends, Job, Permanent, Workflow
from tests.actions import record

QUICK = Backoff(schedule=(0.05,), jitter=0)


class Audit(BaseModel):
    customer: str
    url: HttpUrl
    pages: int = 3
    bad: int = 0


class Visit(BaseModel):
    url: HttpUrl
    bad: bool = False


class Page(BaseModel):
    url: HttpUrl
    title: str


class Approval(BaseModel):
    by: str


class Report(BaseModel):
    customer: str
    titles: list[str]
    approved_by: str | None


INSERT = text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)")

page_audit = Workflow("page-audit", body=Visit)


@page_audit.phase(backoff=QUICK, max_attempts=1)
async def visit(job: Job[Visit]) -> Page:
    if job.body.bad:
        raise Permanent("gone")
    return Page(url=job.body.url, title=f"Page {job.body.url}")


audit = Workflow("approved-audit", body=Audit, result=Report)


async def fetch(job: Job[Audit]) -> list[str]:
    record(job)
    return [f"{job.body.url}{n}" for n in range(job.body.pages)]


@audit.phase
async def crawl(job: Job[Audit]) -> list[str]:
    return await job.step("fetch", fetch, job)


@audit.phase
def look(job: Job[Audit], crawl: list[str]) -> Children[Page]:
    return job.spawn(page_audit, [{"url": u, "bad": n < job.body.bad} for n, u in enumerate(crawl)])


@audit.phase
def approve(job: Job[Audit], look: Ends[Page]) -> Approval | None:
    if all(page.ok for page in look):
        return job.goto(publish)
    return job.wait_for("approved", timeout=timedelta(days=7))


@audit.phase(isolated=True, memory_limit="2 GiB", time_limit=600)
def publish(job: Job[Audit], look: Ends[Page], approve: Approval | None = None) -> Done[Report]:
    titles = [page.result.title if page.ok else f"{page.status}: {page.error}" for page in look]
    report = Report(customer=job.body.customer, titles=titles, approved_by=approve.by if approve else None)
    return Done(report, write=lambda db: db.execute(INSERT, {"job": job.id, "phase": "publish", "fence": job.fence}))


patient = Workflow("patient")


@patient.phase
def rest(job: Job) -> Done[int]:
    record(job)
    job.sleep("nap", timedelta(seconds=job.body["seconds"]))
    return Done(job.fence, after=timedelta(seconds=job.body["seconds"]))


@patient.phase
async def doze(job: Job) -> int:
    record(job)
    await job.sleep("nap", timedelta(seconds=job.body["seconds"]))
    return job.fence


@patient.phase(isolated=True)
def drowse(job: Job) -> int | None:
    record(job)
    job.sleep("nap", timedelta(seconds=job.body["seconds"]))
    return job.wait_for("morning", timeout=timedelta(seconds=job.body["seconds"]), default=-1)


@patient.phase
def wake(job: Job, drowse: int) -> int:
    return drowse


crowd = Workflow("crowd")


@crowd.phase
async def gather(job: Job) -> Children[Page]:
    bodies = ({"url": f"http://example.org/{n}", "bad": n % 33 == 32} for n in range(job.body["children"]))
    return job.spawn(page_audit, bodies, policy=job.body.get("policy", "best_effort"))


@crowd.phase(backoff=QUICK)
async def count_ends(job: Job, gather: Ends[Page]) -> list[int]:
    record(job)
    numbers, failed = [], 0
    async for end in gather:
        failed += not end.ok
        if end.ok:
            numbers.append(int(str(end.result.url).rsplit("/", 1)[-1]))
    assert numbers == sorted(numbers), "the ends are in the order of the bodies"
    return [len(gather), len(numbers), failed]


rounds = Workflow("rounds")


@rounds.phase
def around(job: Job) -> int:
    record(job)
    return (job.results.get("around") or 0) + 1


@rounds.phase
def decide(job: Job, around: int) -> str:
    if around < job.body["rounds"]:
        return job.goto("around")
    return job.finish("enough")


@rounds.phase
def never(job: Job) -> str:
    record(job)
    return "never"


race = Workflow("race")


@race.phase
def ask(job: Job) -> str:
    return job.wait_for("answer", timeout=timedelta(seconds=job.body["seconds"]), default="timeout")


@race.phase
def tell(job: Job, ask: str) -> str:
    return ask
