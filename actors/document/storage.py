"""Where PDFs are kept. A folder today; an object store can join behind the same interface."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from uuid import uuid4

from pipeline import Permanent
from pipeline.http.client import MEBIBYTE

KEY = re.compile(r"[0-9a-f]{64}\.pdf")
ABANDONED_SECONDS = 24 * 3600.0


class TooLarge(Permanent):
    """The document has more bytes than allowed; nothing was kept."""


@dataclass(frozen=True)
class Stored:
    """What was kept: under which key, how many bytes, and their SHA-256."""

    key: str
    sha256: str
    size: int


class DocumentStore(Protocol):
    """Keeps documents by their content: the same bytes always have the same key, so that a repeat does no harm."""

    async def put(self, chunks: AsyncIterable[bytes], limit: int) -> Stored:
        """Keep the whole stream or nothing; raises TooLarge beyond ``limit`` bytes."""

    def open(self, key: str) -> BinaryIO:
        """The document's bytes; raises Permanent if there is none under ``key``."""


class FolderStore:
    """A DocumentStore in a folder. A file appears under its key in one step, complete and on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, chunks: AsyncIterable[bytes], limit: int) -> Stored:
        """As DocumentStore says. The disk may be slow: it is written to in a thread, piece by piece."""
        part = await asyncio.to_thread(self._begin)
        try:
            async for chunk in chunks:
                await asyncio.to_thread(part.add, chunk, limit)
            return await asyncio.to_thread(part.keep)
        finally:
            await asyncio.to_thread(part.discard)

    def open(self, key: str) -> BinaryIO:
        """As DocumentStore says."""
        if not KEY.fullmatch(key):
            raise Permanent(f"{key!r} is not the key of a document")
        try:
            return (self._folder / key).open("rb")
        except FileNotFoundError:
            raise Permanent(
                f"document {key} is not in the store: do all workers share PIPELINE_DOCUMENT_FOLDER?"
            ) from None

    def _begin(self) -> _Part:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        return _Part(self._folder)

    def _sweep(self) -> None:
        # a worker that was killed while it wrote could not remove its part
        oldest = time.time() - ABANDONED_SECONDS
        for part in self._folder.glob("*.part"):
            try:
                if part.stat().st_mtime < oldest:
                    part.unlink()
            except FileNotFoundError:
                pass


class _Part:
    """A document that is being written, under a name of its own until it is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"{uuid4().hex}.part"
        self._file = self._path.open("xb")
        self._digest, self._size = hashlib.sha256(), 0

    def add(self, chunk: bytes, limit: int) -> None:
        self._size += len(chunk)
        if self._size > limit:
            raise TooLarge(f"the document is larger than the allowed {limit / MEBIBYTE:g} MiB")
        self._digest.update(chunk)
        self._file.write(chunk)

    def keep(self) -> Stored:
        self._file.flush()
        os.fsync(self._file.fileno())
        digest = self._digest.hexdigest()
        self._path.replace(self._folder / f"{digest}.pdf")
        return Stored(f"{digest}.pdf", digest, self._size)

    def discard(self) -> None:
        """Close it, and remove it unless it was kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)
