"""Beside the four workflows: an audit in a few lines, with coroutines, children, a person's answer and a schedule."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urljoin

import httpx
from sqlalchemy import Connection, text

from pipeline import Children, Ends, Job, Permanent, Workflow, schedule, signal, submit_many, unschedule

SITES, DIGESTS = 5, 2
WAITING = text("SELECT job_id FROM pipeline.outbox WHERE waits_for = 'event:approved'")
DIGESTED = text("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'audit-digest' AND completed_at IS NOT NULL")

audit = Workflow("site-audit", result=str)
visit = Workflow("page-visit", result=str)
digest = Workflow("audit-digest")


async def fetch(url: str) -> str:
    async with httpx.AsyncClient(timeout=10) as client:
        return (await client.get(url)).raise_for_status().text


@visit.phase
async def look_at(job: Job) -> str:
    if not (found := re.search("<title>(.*?)</title>", await fetch(job.body["url"]), re.DOTALL)):
        raise Permanent("the page has no title")
    return found[1].strip()


@audit.phase
async def crawl(job: Job) -> list[str]:
    page = await job.step("fetch", fetch, job.body["url"])
    found = {urljoin(job.body["url"], link) for link in re.findall('href="([^"#]+)"', page)}
    return sorted(url for url in found if url.startswith(job.body["url"]))


@audit.phase
def look(job: Job, crawl: list[str]) -> Children[str]:
    return job.spawn(visit, [{"url": url} for url in crawl])


@audit.phase
def approve(job: Job) -> str | None:
    return job.wait_for("approved", timeout=timedelta(hours=1))


@audit.phase
def publish(job: Job, look: Ends[str]) -> str:  # noqa: ARG001  a phase takes the job first
    return f"{len(look)} pages, {look.failed} failed"


@digest.phase
def count(job: Job) -> int:
    [row] = job.read("SELECT count(*) AS ended FROM pipeline.jobs WHERE completed_at IS NOT NULL")
    return int(row["ended"])


def begin(connection: Connection, sandbox: str) -> None:
    submit_many(connection, "site-audit", [{"url": f"{sandbox}/sites/{n}/"} for n in range(1, SITES + 1)])
    schedule(connection, "audit-digest", "often", every=timedelta(seconds=2), overlap="skip")


def meanwhile(connection: Connection) -> list[str]:
    """What a person does while the workers work, in words: approves what waits for that, ends the schedule."""
    said = []
    answers = [signal(connection, job, "approved", "you") for job in connection.execute(WAITING).scalars().all()]
    if delivered := answers.count("delivered"):
        said.append(f"audits that waited for a person, and are approved now: {delivered}")
    if connection.execute(DIGESTED).scalar_one() >= DIGESTS and unschedule(connection, "audit-digest", "often"):
        said.append(f"the schedule has submitted {DIGESTS} digests: unscheduled")
    return said
