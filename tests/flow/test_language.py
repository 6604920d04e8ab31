"""The language of workflows, as docs and README show it: types, steps, one open job a key, tags, expiry, a result."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from pydantic import HttpUrl
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from pipeline import job as job_of
from tests.language_workflow import Audit, Page, Report, audit
from tests.place import Place

BODY = Audit(customer="c-17", url=HttpUrl("http://example.org/"))
REPORT = Report(
    customer="c-17",
    pages=[
        Page(url=HttpUrl("http://example.org/about"), ok=True),
        Page(url=HttpUrl("http://example.org/offer"), ok=False),
    ],
)


def test_an_audit_runs_as_it_is_written(place: Place) -> None:
    """In the caller's transaction, once for a key, its step done once, and its result waited for."""
    place.worker(PIPELINE_WORKFLOWS="tests.language_workflow")
    engine = create_engine(place.database_url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        job = audit.submit(BODY, session=session, unique="open", tags=["vip"], expires=timedelta(hours=2))
        again = audit.submit(BODY, session=session, unique="open")
        session.commit()
    assert again.id == job.id
    assert job.result(timeout=60) == REPORT
    assert audit.submit(BODY, unique="open").id != job.id, "a job that has ended leaves its key"
    crawled = [execution for execution in place.executions() if execution[0] == str(job.id)]
    assert len(crawled) == 1, "the step was done in the first attempt, and not again"
    assert [one["outcome"] for one in place.attempts(job.id)] == ["retried", "succeeded", "succeeded", "succeeded"]
    assert place.count("SELECT count(*) FROM ledger WHERE job_id = %s", job.id) == 1
    assert [seen.state for seen in job.watch()][-1] == "succeeded"


def test_an_async_application_awaits_the_same(place: Place) -> None:
    """What is awaited to submit is awaited for its result; by its id any process has it."""
    place.worker(PIPELINE_WORKFLOWS="tests.language_workflow")

    async def app() -> tuple[Report, Report]:
        engine = create_async_engine(place.database_url.replace("postgresql://", "postgresql+psycopg://"))
        async with engine.begin() as connection:
            job = await audit.submit(BODY, session=connection)
        own = await job.result(timeout=60)
        other = await job_of(job.id).aio.result(timeout=5)
        await engine.dispose()
        return own, other

    assert asyncio.run(app()) == (REPORT, REPORT)
