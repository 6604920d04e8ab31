"""The row of a website job in ``website_analyses``: each phase writes its own columns, later ones read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from actors.website.chat import ModelEndpoint
from actors.website.messages import Prompts
from actors.website.model import Analysed
from actors.website.page import Page
from pipeline import Job, Permanent

Write = Callable[[Connection], None]

_UPSERT_PAGE = text("""
    insert into website_analyses (job_id, url, final_url, page)
    values (:job_id, :url, :final_url, cast(:page as jsonb))
    on conflict (job_id) do update
    set url = excluded.url, final_url = excluded.final_url, page = excluded.page, updated_at = now()
""")
_UPSERT_PROMPTS = text("""
    insert into website_analyses (job_id, prompts) values (:job_id, cast(:prompts as jsonb))
    on conflict (job_id) do update set prompts = excluded.prompts, updated_at = now()
""")
_UPSERT_ANSWER = text("""
    insert into website_analyses (job_id, answer, model, tokens_in, tokens_out, cost_usd)
    values (:job_id, cast(:answer as jsonb), :model, :tokens_in, :tokens_out, :cost_usd)
    on conflict (job_id) do update
    set answer = excluded.answer, model = excluded.model, tokens_in = excluded.tokens_in,
        tokens_out = excluded.tokens_out, cost_usd = excluded.cost_usd, updated_at = now()
""")
_END_VISIT = text("delete from website_visits where job_id = :job_id")
_READ_PAGE = "select page as kept from website_analyses where job_id = :job_id"
_READ_PROMPTS = "select prompts as kept from website_analyses where job_id = :job_id"
_STORED = text("select * from website_analyses where job_id = :job_id")


def save_page(job_id: UUID, asked_url: str, page: Page, *, waited: bool = False) -> Write:
    """A write that keeps the page. ``waited``: what was kept on the way to it is no longer needed."""
    values = {"job_id": job_id, "url": asked_url, "final_url": page.url, "page": page.model_dump_json()}

    def write(connection: Connection) -> None:
        _run(connection, _UPSERT_PAGE, values)
        if waited:
            _run(connection, _END_VISIT, {"job_id": job_id})

    return write


def save_prompts(job_id: UUID, prompts: Prompts) -> Write:
    """A write that keeps the prompts."""
    values = {"job_id": job_id, "prompts": prompts.model_dump_json()}
    return lambda connection: _run(connection, _UPSERT_PROMPTS, values)


def save_answer(job_id: UUID, analysed: Analysed, endpoint: ModelEndpoint) -> Write:
    """A write that keeps the analysis and what it cost."""
    values = {
        "job_id": job_id,
        "answer": json.dumps(analysed.analysis.model_dump(mode="json"), ensure_ascii=False),
        "model": analysed.model,
        "tokens_in": analysed.usage.tokens_in,
        "tokens_out": analysed.usage.tokens_out,
        "cost_usd": analysed.usage.cost(endpoint),
    }
    return lambda connection: _run(connection, _UPSERT_ANSWER, values)


def load_page(job: Job) -> Page:
    """The page that website-analysis kept; raises Permanent if there is none."""
    rows = job.read(_READ_PAGE, job_id=job.id)
    return Page.model_validate(_kept(job, rows, "page: website-analysis must run first"))


async def load_prompts(job: Job) -> Prompts:
    """The prompts that prompt-forming kept; raises Permanent if there are none."""
    rows = await job.read(_READ_PROMPTS, job_id=job.id)
    return Prompts.model_validate(_kept(job, rows, "prompts: prompt-forming must run first"))


def stored_analysis(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """Everything kept about a website job, by column; None if nothing is."""
    row = connection.execute(_STORED, {"job_id": job_id}).mappings().one_or_none()
    return dict(row) if row is not None else None


def _run(connection: Connection, statement: Any, values: Mapping[str, Any]) -> None:
    connection.execute(statement, dict(values))


def _kept(job: Job, rows: Sequence[Mapping[str, Any]], missing: str) -> Any:
    kept = rows[0]["kept"] if rows else None
    if kept is None:
        raise Permanent(f"job {job.id} has no {missing}")
    return kept
