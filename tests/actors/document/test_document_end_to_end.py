"""The document workflow through real workers, real servers and real HTTP to the sandbox."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from pipeline import submit, submit_many
from sandbox import Sandbox
from sandbox.papers import PAPERS
from tests.actors.document.accuracy import accuracy
from tests.actors.document.memory import watched
from tests.place import Place

DEED, GAZETTE = "RF-1937-0117", "RF-1938-0042"
BAD = {
    "BAD-ENCRYPTED": "encrypted",
    "BAD-TRUNCATED": "truncated",
    "BAD-ZERO-PAGES": "no pages",
    "BAD-PAGE-BOMB": "10000 pages, the limit is 500",
    "BAD-GIANT-PAGE": "200000 × 200000 points",
}
NO_PDF = {
    "RF-0000-0000": ("no document RF-0000-0000", ["failed"]),
    "BAD-NOT-A-PDF": ("not a PDF", ["retried", "retried", "exhausted"]),
}


def queue(place: Place, job: UUID) -> dict[str, Any]:
    row = place.row("SELECT * FROM extraction_queue WHERE id = %s", str(job))
    assert row is not None
    return row


def temp_files(place: Place) -> list[Path]:
    return [path for path in (place.folder / "temp").rglob("*") if path.is_file()]


def test_a_worker_killed_on_page_four_leaves_three_pages_to_the_next_and_the_text_is_right(
    place: Place, environment: dict[str, str]
) -> None:
    """Six scanned pages of French, 99 % of the characters right, and no page read twice."""
    first = place.worker(threads=2, settings=environment)
    job = submit(None, "document", {"document_number": DEED})
    place.until(lambda: place.count("SELECT count(*) FROM document_pages") == 3, 120, "three pages")
    seen = queue(place, job)
    assert (seen["status_id"], seen["text"], seen["ocr_worker_id"]) == (4, None, place.job(job)["locked_by"])
    assert temp_files(place) != []
    os.killpg(first.pid, signal.SIGKILL)
    place.worker(threads=2, settings=environment)
    row = place.finished(job, timeout=120)[0]
    assert row["status"] == "succeeded", row["error_message"]
    fences = [page["fence"] for page in place.rows("SELECT fence FROM document_pages ORDER BY page")]
    assert fences[:3] == [fences[0]] * 3 and fences[3:] == [row["fence"]] * 3 and fences[0] < row["fence"]
    assert row["result"]["ocr"]["read_now"] == 3
    done = queue(place, job)
    share = accuracy("\n\n".join(PAPERS[DEED].pages), done["boosted_text"])
    print(f"{share:.4%} of {len(done['boosted_text'])} characters")
    assert share >= 0.99
    assert (done["status_id"], done["pages"], done["pages_done"]) == (5, 6, 6)
    place.until(lambda: temp_files(place) == [], 20, "the temp folders to be gone")


def test_every_bad_document_ends_with_its_own_error_and_the_worker_lives_on(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """Errors of the two phases stay apart; no process takes 1.5 GB; a good document after them is read as ever."""
    sandbox.add_fault(match="/registry/documents/BAD-ENCRYPTED/pdf", status=503, times=1)
    worker = place.worker(threads=4, settings=environment)
    pids = place.pids()
    with watched(worker.pid) as memory:
        jobs = dict(
            zip(
                (*BAD, *NO_PDF),
                submit_many(None, "document", [{"document_number": number} for number in (*BAD, *NO_PDF)]),
                strict=True,
            )
        )
        place.finished(*jobs.values(), timeout=120)
        good = submit(None, "document", {"document_number": GAZETTE})
        assert place.finished(good, timeout=120)[0]["status"] == "succeeded"
    for number, job in jobs.items():
        check_failure(place, number, job)
    text = queue(place, good)["boosted_text"]
    assert accuracy(PAPERS[GAZETTE].pages[0], text) >= 0.99 and "riverains. Le maire" in text
    print(f"at most {memory.most / 1e6:.0f} MB in one of {len(memory.processes)} processes")
    assert 300e6 < memory.most < 1.5e9
    assert place.pids() == pids
    assert sandbox.stats()["paths"]["/registry/login"] == 1
    place.until(lambda: temp_files(place) == [], 20, "the temp folders to be gone")


def check_failure(place: Place, number: str, job: UUID) -> None:
    """Status 6, with the right words in the column of the right phase."""
    seen = queue(place, job)
    outcomes = [attempt["outcome"] for attempt in place.attempts(job)]
    assert (seen["status_id"], seen["status"], seen["ocr_max_attempts"]) == (6, "ERREUR", 3)
    if number in NO_PDF:
        says, expected = NO_PDF[number]
        assert says in seen["error_message"] and outcomes == expected, seen["error_message"]
        assert (seen["ocr_error"], seen["ocr_attempts"]) == (None, 0)
        return
    assert BAD[number] in seen["ocr_error"] and seen["ocr_attempts"] == 1, seen["ocr_error"]
    stumbled = number == "BAD-ENCRYPTED"
    assert outcomes == [*["retried"] * stumbled, "succeeded", "failed"]
    assert ("503" in seen["error_message"]) if stumbled else (seen["error_message"] is None)


def reads(pid: int) -> bool:
    """Whether the process computes: a page takes it seconds."""
    try:
        return bool(psutil.Process(pid).cpu_percent(0.3) > 20)
    except psutil.NoSuchProcess:
        return False


def test_a_cancel_stops_the_reading_and_leaves_nothing_of_it(place: Place, environment: dict[str, str]) -> None:
    """Its temp folder is gone, and so are the pages it had read; the worker is not, nor does its reader read on.

    The reader is ended, or it met the cancel when it wanted to keep a page, and waits for another document.
    """
    worker = place.worker(threads=2, settings=environment)
    job = submit(None, "document", {"document_number": DEED})
    place.until(lambda: place.count("SELECT count(*) FROM document_pages") >= 1, 120, "the first page")
    readers = [p.pid for p in psutil.Process(worker.pid).children(recursive=True) if p.name() == "pipeline-child"]
    assert len(readers) == 1
    place.db.execute("SELECT pipeline.cancel(%s, 'wrong document')", (job,))
    place.until(lambda: temp_files(place) == [] and not reads(readers[0]), 10, "the reader to stop")
    assert place.count("SELECT count(*) FROM document_pages") == 0
    seen = queue(place, job)
    assert (seen["status_id"], seen["ocr_error"], seen["text"]) == (6, "wrong document", None)
    assert len(place.pids()) == 1


def test_the_second_document_of_a_child_finds_the_models_loaded(place: Place, environment: dict[str, str]) -> None:
    """One after the other, read by the same process."""
    place.worker(threads=2, settings=environment)
    for _ in range(2):
        job = submit(None, "document", {"document_number": GAZETTE})
        [row] = place.finished(job, timeout=120)
        assert row["status"] == "succeeded" and row["result"]["ocr"]["read_now"] == 1, row["error_message"]
    assert place.logs().count("loading the OCR models") == 1
