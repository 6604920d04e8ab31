"""Where PDFs are kept. A folder today; an object store can join behind the same interface."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable
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

    def put(self, chunks: Iterable[bytes], limit: int) -> Stored:
        """Keep the whole stream or nothing; raises TooLarge beyond ``limit`` bytes."""

    def open(self, key: str) -> BinaryIO:
        """The document's bytes; raises Permanent if there is none under ``key``."""


class FolderStore:
    """A DocumentStore in a folder. A file appears under its key in one step, complete and on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, chunks: Iterable[bytes], limit: int) -> Stored:
        """As DocumentStore says."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        part = self._folder / f"{uuid4().hex}.part"
        try:
            digest, size = _write(part, chunks, limit)
            part.replace(self._folder / f"{digest}.pdf")
        finally:
            part.unlink(missing_ok=True)
        return Stored(f"{digest}.pdf", digest, size)

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

    def _sweep(self) -> None:
        # a worker that was killed while it wrote could not remove its part
        oldest = time.time() - ABANDONED_SECONDS
        for part in self._folder.glob("*.part"):
            try:
                if part.stat().st_mtime < oldest:
                    part.unlink()
            except FileNotFoundError:
                pass


def _write(part: Path, chunks: Iterable[bytes], limit: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with part.open("xb") as file:
        for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise TooLarge(f"the document is larger than the allowed {limit / MEBIBYTE:g} MiB")
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest(), size
