"""Phase 1: find the document in the registry and keep its PDF."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from actors.document import store
from actors.document.config import DocumentSettings
from actors.document.registry import shared_registry
from actors.document.storage import FolderStore
from pipeline import Done, Job, Permanent, Transient

NUMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]{0,63}")
# Readers look for the signature within the first kilobyte, because some writers put a few bytes before it.
SIGNATURE, SIGNATURE_WITHIN = b"%PDF-", 1024


async def registre_extraction(job: Job) -> Done:
    """Keep the PDF of ``body["document_number"]``; fails for good if the registry has no such document."""
    settings = DocumentSettings()
    number = asked_number(job.body)
    registry = await shared_registry(settings)
    entry = await registry.find(number)
    async with registry.pdf(entry) as chunks:
        stored = await FolderStore(settings.folder).put(only_pdf(number, chunks), settings.max_bytes)
    result = {"pdf_key": stored.key, "sha256": stored.sha256, "bytes": stored.size, "title": entry.title[:200]}
    return Done(result=result, write=store.save_pdf(job.id, entry, stored))


def asked_number(body: dict[str, Any]) -> str:
    """The document number in a job's body."""
    number = body.get("document_number")
    if not isinstance(number, str) or not NUMBER.fullmatch(number.strip()):
        raise Permanent('the job names no document: submit it with {"document_number": "RF-1937-0117"}')
    return number.strip()


async def only_pdf(number: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream itself, if it begins as a PDF; raises Transient if the registry sends something else."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head) >= SIGNATURE_WITHIN:
            break
    if SIGNATURE not in head[:SIGNATURE_WITHIN]:
        raise Transient(f"what the registry sent for document {number} is not a PDF ({len(head)} bytes seen)")
    yield head
    async for chunk in chunks:
        yield chunk
