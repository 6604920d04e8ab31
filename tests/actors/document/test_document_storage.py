"""The folder of documents: whole files under their checksum, or nothing."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actors.document.storage import FolderStore, TooLarge
from pipeline.declare.errors import Permanent
from tests.actors.document.pieces import in_pieces


def test_the_same_bytes_have_the_same_key(tmp_path: Path) -> None:
    """A repeat does no harm, however the stream is cut."""
    store = FolderStore(tmp_path / "new" / "folder")
    first = asyncio.run(store.put(in_pieces(b"abc", b"def"), 100))
    second = asyncio.run(store.put(in_pieces(b"abcdef"), 6))
    assert first == second and first.sha256 == hashlib.sha256(b"abcdef").hexdigest() and first.size == 6
    with store.open(first.key) as file:
        assert file.read() == b"abcdef"
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 1


def test_a_stream_that_breaks_or_runs_over_leaves_nothing(tmp_path: Path) -> None:
    """Neither a part nor a file that looks whole."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"abc"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(FolderStore(tmp_path).put(broken(), 100))
    with pytest.raises(TooLarge):
        asyncio.run(FolderStore(tmp_path).put(in_pieces(b"abc", b"def"), 5))
    assert list(tmp_path.iterdir()) == []


def test_parts_left_by_a_killed_worker_are_swept_after_a_day(tmp_path: Path) -> None:
    """Younger ones may belong to a worker that still writes."""
    old, young = tmp_path / "old.part", tmp_path / "young.part"
    for part in (old, young):
        part.write_bytes(b"half")
    os.utime(old, (time.time() - 90_000,) * 2)
    asyncio.run(FolderStore(tmp_path).put(in_pieces(b"abc"), 100))
    assert not old.exists() and young.exists()


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "a" * 64, "/" + "a" * 63 + ".pdf", "A" * 64 + ".pdf"])
def test_a_key_cannot_lead_out_of_the_folder(tmp_path: Path, key: str) -> None:
    """Only the form that ``put`` gives is looked up at all."""
    with pytest.raises(Permanent, match="is not the key"):
        FolderStore(tmp_path).open(key)


def test_a_document_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The usual cause is that workers do not share the folder, and the message says so."""
    with pytest.raises(Permanent, match="PIPELINE_DOCUMENT_FOLDER"):
        FolderStore(tmp_path).open("0" * 64 + ".pdf")
