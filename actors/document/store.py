"""The rows of a document job: the PDF, its pages as they are read, and the text once all of them are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from actors.document.registry import Entry
from actors.document.storage import Stored
from pipeline import Job, Permanent

Write = Callable[[Connection], None]
SHOWN_LETTERS = 2000

_SAVE_PDF = text("""
    insert into documents (job_id, number, title, pdf_key, sha256, bytes)
    values (:job_id, :number, :title, :pdf_key, :sha256, :bytes)
    on conflict (job_id) do update
    set number = excluded.number, title = excluded.title, pdf_key = excluded.pdf_key, sha256 = excluded.sha256,
        bytes = excluded.bytes, updated_at = now()
""")
_READ_PDF = "select pdf_key, sha256 from documents where job_id = :job_id"
_KEEP_PAGE = """
    insert into document_pages (job_id, page, text, boosted, confidence, engine, doubt, fence)
    values (:job_id, :page, :text, :boosted, :confidence, :engine, :doubt, :fence)
    on conflict (job_id, page) do update
    set text = excluded.text, boosted = excluded.boosted, confidence = excluded.confidence, engine = excluded.engine,
        doubt = excluded.doubt, fence = excluded.fence, read_at = now()
"""
_KEPT_PAGES = """
    select page, text, boosted, confidence, engine, doubt from document_pages where job_id = :job_id order by page
"""
_SAVE_TEXT = text("""
    update documents set pages = :pages, text = :text, boosted_text = :boosted, engine = :engine,
        confidence = :confidence, doubts = cast(:doubts as jsonb), updated_at = now()
    where job_id = :job_id
""")
_STORED = text("""
    select number, title, pdf_key, sha256, bytes, pages, engine, confidence,
           jsonb_array_length(doubts) as doubtful_pages, doubts,
           length(boosted_text) as characters, left(boosted_text, :most) as text
    from documents where job_id = :job_id
""")


@dataclass(frozen=True)
class PageText:
    """One page that was read. ``doubt`` says why its text may be wrong; None: there is no reason to think so."""

    page: int
    text: str
    boosted: str
    confidence: float | None
    engine: str
    doubt: str | None


def save_pdf(job_id: UUID, entry: Entry, stored: Stored) -> Write:
    """A write that says where the document's PDF is."""
    values = {
        "job_id": job_id,
        "number": entry.number,
        "title": entry.title,
        "pdf_key": stored.key,
        "sha256": stored.sha256,
        "bytes": stored.size,
    }
    return lambda connection: _run(connection, _SAVE_PDF, values)


def kept_pdf(job: Job) -> tuple[str, str]:
    """Key and SHA-256 of the job's PDF; raises Permanent if it has none."""
    rows = job.read(_READ_PDF, job_id=job.id)
    if not rows:
        raise Permanent(f"job {job.id} has no PDF: registre-extraction must run first")
    return str(rows[0]["pdf_key"]), str(rows[0]["sha256"])


def keep_page(job: Job, page: PageText) -> None:
    """A checkpoint: fenced, and of no effect until the phase completes."""
    job.keep(_KEEP_PAGE, job_id=job.id, fence=job.fence, **asdict(page))


def kept_pages(job: Job) -> dict[int, PageText]:
    """The pages that earlier attempts kept, by number."""
    return {row["page"]: PageText(**row) for row in job.read(_KEPT_PAGES, job_id=job.id)}


def save_text(job_id: UUID, pages: Sequence[PageText], boosted: str) -> Write:
    """A write that makes the pages the document's text."""
    sure = [page.confidence for page in pages if page.confidence is not None]
    doubts = [{"page": page.page, "doubt": page.doubt} for page in pages if page.doubt is not None]
    values = {
        "job_id": job_id,
        "pages": len(pages),
        "text": "\n\n".join(page.text for page in pages),
        "boosted": boosted,
        "engine": engines(pages),
        "confidence": sum(sure) / len(sure) if sure else None,
        "doubts": json.dumps(doubts),
    }
    return lambda connection: _run(connection, _SAVE_TEXT, values)


def engines(pages: Sequence[PageText]) -> str:
    """What the pages were read with."""
    return ", ".join(sorted({page.engine for page in pages}))


def stored_document(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """What is kept about a document job, its text cut; None if nothing is."""
    row = connection.execute(_STORED, {"job_id": job_id, "most": SHOWN_LETTERS}).mappings().one_or_none()
    return dict(row) if row is not None else None


def _run(connection: Connection, statement: Any, values: dict[str, Any]) -> None:
    connection.execute(statement, values)
