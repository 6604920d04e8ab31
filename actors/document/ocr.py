"""Phase 2: read the PDF's pages, and keep each as it is done."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from actors.document import store
from actors.document.boost import boost_document
from actors.document.boosters import choose_booster
from actors.document.config import DocumentSettings
from actors.document.engines import choose_engine
from actors.document.pdf import PdfFile, open_pdf
from actors.document.reading import read_page
from actors.document.storage import FolderStore
from actors.document.store import PageText
from pipeline import Done, Job, Permanent


def ocr(job: Job) -> Done:
    """The text of the job's PDF. Pages that an earlier attempt kept are not read again."""
    settings = DocumentSettings()
    path = fetch_pdf(job, settings)
    pages = store.kept_pages(job)
    with open_pdf(path, settings) as pdf:
        missing = [page for page in range(1, pdf.pages + 1) if page not in pages]
        job.progress(pdf.pages - len(missing), pdf.pages)
        _read_pages(job, pdf, missing, pages, settings)
        total = pdf.pages
    ordered = [pages[page] for page in range(1, total + 1)]
    boosted = boost_document([page.boosted for page in ordered])
    result = {
        "pages": total,
        "read_now": len(missing),
        "doubtful_pages": sum(page.doubt is not None for page in ordered),
        "characters": len(boosted),
        "engine": store.engines(ordered),
    }
    return Done(result=result, write=store.save_text(job.id, ordered, boosted))


def fetch_pdf(job: Job, settings: DocumentSettings) -> Path:
    """The job's PDF in its temp folder; raises Permanent unless it is byte for byte what was stored."""
    key, sha256 = store.kept_pdf(job)
    path, digest = job.tmp / "document.pdf", hashlib.sha256()
    with FolderStore(settings.folder).open(key) as source, path.open("wb") as copy:
        while chunk := source.read(1024 * 1024):
            digest.update(chunk)
            copy.write(chunk)
    if digest.hexdigest() != sha256:
        raise Permanent(f"document {key} was damaged in the store: its checksum is {digest.hexdigest()}")
    return path


def _read_pages(
    job: Job, pdf: PdfFile, missing: list[int], pages: dict[int, PageText], settings: DocumentSettings
) -> None:
    engine, boost = choose_engine(settings), choose_booster(settings)
    # The child's own loop, for engines and boosters that are asked over the network.
    with asyncio.Runner() as loop:
        for page in missing:
            job.check()
            key = f"{job.idempotency_key}:{page}"
            found = loop.run(read_page(*pdf.page(page), engine, key, settings.doubt_below))
            boosted = loop.run(boost(found.text, key))
            confidence = found.text.confidence
            pages[page] = PageText(page, found.text.text, boosted, confidence, found.engine, found.doubt)
            store.keep_page(job, pages[page])
            job.progress(len(pages), pdf.pages)
