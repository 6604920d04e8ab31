"""What is stored, on a real PostgreSQL: the three phases one after the other, and the seed's view of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, text

from actors.website.config import WebsiteSettings
from actors.website.model_analysis import model_analysis
from actors.website.page import Page
from actors.website.prompt_forming import prompt_forming
from actors.website.store import load_page, save_page, stored_analysis
from actors.website.website_analysis import website_analysis
from pipeline.declare.errors import Permanent
from pipeline.declare.job import Done, Job
from pipeline.testing import FakeServices

PHASES: dict[str, Callable[[Job], Done]] = {
    "website-analysis": lambda job: asyncio.run(website_analysis(job)),
    "prompt-forming": prompt_forming,
    "model-analysis": lambda job: asyncio.run(model_analysis(job)),
}


def new_job(connection: Connection, url: str) -> Job:
    row = connection.execute(
        text("""insert into pipeline.jobs (workflow, phase, body, trace_id, span_id, max_attempts)
                values ('website', 'website-analysis', cast(:body as jsonb), :trace, :span, 3) returning id"""),
        {"body": json.dumps({"url": url}), "trace": "1" * 32, "span": "1" * 16},
    )

    def read(statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return connection.execute(text(statement), dict(parameters)).mappings().all()  # type: ignore[return-value]  # rows are mappings

    return Job(body={"url": url}, id=UUID(str(row.scalar_one())), services=FakeServices(read=read))


def run(connection: Connection, job: Job, phase: str) -> Done:
    """Do a phase's outside work, then its write; the engine does no more than that with it."""
    job.phase = phase
    connection.execute(text("update pipeline.jobs set phase = :phase where id = :id"), {"phase": phase, "id": job.id})
    done = PHASES[phase](job)
    assert done.write is not None
    done.execute(connection)
    return done


def seen(connection: Connection, job: Job) -> dict[str, Any]:
    row = connection.execute(text("select * from analysis_jobs where id = :id"), {"id": str(job.id)})
    return dict(row.mappings().one())


@pytest.mark.parametrize("number", [0, 3, 4])
def test_three_phases_leave_one_complete_row(connection: Connection, settings: WebsiteSettings, number: int) -> None:
    """Page, prompts and answer, with model, tokens and the address asked for."""
    job = new_job(connection, f"{settings.sandbox_url}/sites/{number}/")
    for phase in PHASES:
        run(connection, job, phase)
    row = stored_analysis(connection, job.id)
    assert row is not None
    assert row["answer"]["summary"]
    assert row["answer"]["language"] == row["page"]["language"]
    assert (row["model"], row["url"], row["cost_usd"]) == ("sandbox", job.body["url"], None)
    assert row["tokens_in"] > row["tokens_out"] > 0


def test_repeating_a_phase_changes_nothing(connection: Connection, settings: WebsiteSettings) -> None:
    """A takeover runs a phase again; the row stays one row."""
    job = new_job(connection, f"{settings.sandbox_url}/sites/2/")
    for phase in (*PHASES, *PHASES):
        run(connection, job, phase)
    count = connection.execute(text("select count(*) from website_analyses where job_id = :id"), {"id": job.id})
    assert count.scalar_one() == 1


def test_the_view_shows_the_seeds_states(connection: Connection, settings: WebsiteSettings) -> None:
    """not-started, then the phase that comes next, then completed or failed."""
    job = new_job(connection, f"{settings.sandbox_url}/sites/1/")
    first = seen(connection, job)
    assert (first["status"], first["currentStep"], first["inProgress"]) == ("not-started", "not-started", False)
    assert (first["url"], first["retryCount"], first["extractedInfo"]) == (job.body["url"], 0, None)
    run(connection, job, "website-analysis")
    connection.execute(text("update pipeline.jobs set phase = 'prompt-forming', attempts = 1, crashes = 1"))
    second = seen(connection, job)
    assert (second["status"], second["currentStep"], second["retryCount"]) == ("prompt-forming", "prompt-forming", 2)
    assert second["extractedInfo"]["title"]


@pytest.mark.parametrize(
    ("status", "shown", "step"),
    [
        ("succeeded", "completed", "completed"),
        ("failed", "failed", "model-analysis"),
        ("cancelled", "cancelled", "model-analysis"),
    ],
)
def test_the_view_shows_how_a_job_ended(connection: Connection, status: str, shown: str, step: str) -> None:
    """A job that failed keeps the step it failed at."""
    job = new_job(connection, "https://example.com")
    # No worker takes part: PostgreSQL would refuse this step.
    connection.execute(text("set local session_replication_role = replica"))
    connection.execute(
        text(
            "update pipeline.jobs set status = :status, phase = 'model-analysis', completed_at = now() where id = :id"
        ),
        {"status": status, "id": job.id},
    )
    row = seen(connection, job)
    assert (row["status"], row["currentStep"], row["inProgress"]) == (shown, step, False)


def test_the_seeds_query_runs_as_written(connection: Connection) -> None:
    """Its scan for waiting jobs, with the view in place of the table."""
    new_job(connection, "https://example.com")
    connection.execute(
        text("""SELECT id, "createdAt", "retryCount", "extractedInfo" FROM analysis_jobs
                WHERE status = 'not-started' AND "currentStep" = 'not-started' AND "inProgress" = false
                AND "retryCount" < 3 AND "updatedAt" < (NOW() - interval '30 seconds')
                ORDER BY "createdAt" ASC LIMIT 10""")
    ).all()


def test_what_the_web_sent_can_always_be_stored(connection: Connection) -> None:
    """Half characters and NULs would make PostgreSQL refuse the page."""
    from actors.website.page import parse_page

    nasty = (
        '<title>a\x00b\ud800&#0;</title><script type="application/ld+json">{"a": [1e999, "\\ud800\\u0000"]}</script>'
    )
    job = new_job(connection, "https://example.com")
    page = parse_page(nasty.encode("utf-8", "surrogatepass"), "https://example.com/")
    save_page(job.id, "https://example.com", page)(connection)
    assert load_page(job) == page


def test_a_phase_without_its_predecessor_says_so(connection: Connection) -> None:
    """The order is the workflow's; a lost row is not something to retry."""
    job = new_job(connection, "https://example.com")
    with pytest.raises(Permanent, match="website-analysis must run first"):
        load_page(job)
    save_page(job.id, "u", Page(url="https://example.com/"))(connection)
    with pytest.raises(Permanent, match="prompt-forming must run first"):
        asyncio.run(model_analysis(job))


def test_the_analysis_goes_with_its_job(connection: Connection) -> None:
    """Pruning a job leaves no orphan."""
    job = new_job(connection, "https://example.com")
    save_page(job.id, "u", Page(url="https://example.com/"))(connection)
    connection.execute(text("delete from pipeline.jobs where id = :id"), {"id": job.id})
    assert stored_analysis(connection, job.id) is None
