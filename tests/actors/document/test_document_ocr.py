"""The ocr phase without broker and database: which pages it reads, and what it keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from actors.document import ocr as phase
from actors.document.config import DocumentSettings
from actors.document.engines import Recognised
from actors.document.storage import FolderStore
from pipeline.declare.errors import Permanent, StaleClaim
from pipeline.declare.job import Job
from pipeline.testing import FakeServices
from sandbox.raw_pdf import printed
from tests.actors.document.pieces import in_pieces


class CountingEngine:
    """Reads nothing, and numbers the pages as it gets them."""

    name = "counting"

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def read(self, page: object, key: str) -> Recognised:
        self.keys.append(key)
        return Recognised([[f"page read {len(self.keys)}."]], 0.99)


class Desk:
    """The rows of one job, and a job that reads and keeps them."""

    def __init__(self, folder: Path, pages: int) -> None:
        stored = asyncio.run(FolderStore(folder).put(in_pieces(printed([[]] * pages)), 10**6))
        self.pdf: list[dict[str, Any]] = [{"pdf_key": stored.key, "sha256": stored.sha256}]
        self.pages: dict[int, dict[str, Any]] = {}
        self.refuse_after = 100

    def job(self, folder: Path, report: Callable[[int, int], bool] | None = None) -> Job:
        return Job(
            body={},
            phase="ocr",
            services=FakeServices(temp_root=folder, read=self._read, keep=self._keep, report=report),
        )

    def _read(self, statement: str, _: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        if "document_pages" not in statement:
            return self.pdf
        wanted = ("page", "text", "boosted", "confidence", "engine", "doubt")
        return [{name: row[name] for name in wanted} for row in self.pages.values()]

    def _keep(self, _: str, row: Mapping[str, Any]) -> bool:
        if len(self.pages) >= self.refuse_after:
            return False
        self.pages[row["page"]] = dict(row)
        return True


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> CountingEngine:
    counting = CountingEngine()
    monkeypatch.setattr(phase, "choose_engine", lambda _: counting)
    return counting


def test_an_attempt_that_loses_its_job_stops_and_the_next_reads_the_rest(
    settings: DocumentSettings, engine: CountingEngine, tmp_path: Path
) -> None:
    """Four pages: two kept, the third refused by the fence; then the third and the fourth, under stable keys."""
    desk = Desk(settings.folder, 4)
    desk.refuse_after = 2
    with pytest.raises(StaleClaim):
        phase.ocr(desk.job(tmp_path))
    assert sorted(desk.pages) == [1, 2] and len(engine.keys) == 3
    desk.refuse_after = 100
    done = phase.ocr(desk.job(tmp_path))
    assert sorted(desk.pages) == [1, 2, 3, 4]
    kept = {"pages": 4, "read_now": 2, "characters": 4 * 12 + 3 * 2}
    assert done.result == {**kept, "doubtful_pages": 0, "engine": "counting"}
    assert engine.keys[2] == engine.keys[3] != engine.keys[4]


def test_progress_is_shown_page_by_page(settings: DocumentSettings, engine: CountingEngine, tmp_path: Path) -> None:
    """From the first look at the file to its last page."""
    shown: list[tuple[int, int]] = []

    def report(done: int, total: int) -> bool:
        shown.append((done, total))
        return True

    phase.ocr(Desk(settings.folder, 2).job(tmp_path, report))
    assert shown == [(0, 2), (1, 2), (2, 2)]


def test_a_document_damaged_in_the_store_is_not_read(
    settings: DocumentSettings, engine: CountingEngine, tmp_path: Path
) -> None:
    """Its checksum tells."""
    desk = Desk(settings.folder, 1)
    (settings.folder / desk.pdf[0]["pdf_key"]).write_bytes(printed([[], []]))
    with pytest.raises(Permanent, match="damaged in the store"):
        phase.ocr(desk.job(tmp_path))
    assert engine.keys == []


def test_a_job_without_its_pdf_says_so(settings: DocumentSettings, tmp_path: Path) -> None:
    """The order is the workflow's; a lost row is not something to retry."""
    desk = Desk(settings.folder, 1)
    desk.pdf = []
    with pytest.raises(Permanent, match="registre-extraction must run first"):
        phase.ocr(desk.job(tmp_path))
