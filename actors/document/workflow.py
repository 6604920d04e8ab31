"""Documents: the phases in their order, each with its pool and its patience."""

from __future__ import annotations

from actors.document.config import DocumentSettings
from actors.document.ocr import ocr as read_document
from actors.document.registre_extraction import registre_extraction as extract
from pipeline import Backoff, Workflow
from pipeline.settings import read

document = Workflow("document")

registre_extraction = document.phase(
    "registre-extraction", pool=10, time_limit=300.0, backoff=Backoff((5.0, 30.0, 120.0))
)(extract)
# Native code on hostile files: a process of its own for each document. The limit is on address space, of which
# only a part is ever memory. One Retry-After of a remote engine holds all workers back.
ocr = document.phase(
    "ocr",
    pool=read(DocumentSettings).ocr_worker_count,
    isolated=True,
    memory_limit=1_500_000_000,
    time_limit=1800.0,
    stale_after=600.0,
    backoff=Backoff((10.0, 60.0, 300.0)),
    shared_limit=True,
)(read_document)
