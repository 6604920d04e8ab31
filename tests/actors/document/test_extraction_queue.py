"""The seed's SQL on the view ``extraction_queue``, as it is written there."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from actors.document.registry import Entry
from actors.document.storage import Stored
from actors.document.store import PageText, save_pdf, save_text, stored_document
from pipeline import submit
from pipeline.store import database
from tests.place import Place

ACTIVE_WORKERS = """SELECT ocr_worker_id,
        COUNT(*) as active_jobs,
        MIN(ocr_started_at) as oldest_job,
        MAX(ocr_started_at) as newest_job
 FROM extraction_queue
 WHERE status_id = 4
 GROUP BY ocr_worker_id;"""
STALE_JOBS = """SELECT * FROM extraction_queue
WHERE status_id = 4
  AND ocr_started_at < NOW() - INTERVAL '10 minutes'"""
RESET = """UPDATE extraction_queue
SET status_id = 3,  -- Back to COMPLETE
    ocr_worker_id = NULL
WHERE id IN ({})"""
CLAIM = """UPDATE extraction_queue
SET status_id = 4,
    ocr_worker_id = 'worker-1',
    ocr_started_at = NOW(),
    ocr_attempts = ocr_attempts + 1
WHERE id = %s
  AND status_id = 3
RETURNING *;"""


def waiting(place: Place, phase: str = "ocr") -> UUID:
    """A document job that waits at ``phase``."""
    job = submit(None, "document", {"document_number": "RF-1937-0117"})
    place.db.execute("UPDATE pipeline.jobs SET phase = %s WHERE id = %s", (phase, job))
    place.db.execute(
        "UPDATE pipeline.outbox SET phase_id = (SELECT id FROM pipeline.phases WHERE queue = 'document.' || %s) WHERE job_id = %s",
        (phase, job),
    )
    return job


def running(place: Place, phase: str = "ocr", worker: str = "worker-1") -> UUID:
    """A document job that a worker claimed eleven minutes ago."""
    job = waiting(place, phase)
    place.db.execute("DELETE FROM pipeline.outbox WHERE job_id = %s", (job,))
    place.db.execute(
        "UPDATE pipeline.jobs SET status = 'running', fence = fence + 1, locked_by = %s, heartbeat_at = now(),"
        " locked_at = now() - interval '11 minutes' WHERE id = %s",
        (worker, job),
    )
    return job


def seen(place: Place, job: UUID) -> dict[str, Any]:
    row = place.row("SELECT * FROM extraction_queue WHERE id = %s", str(job))
    assert row is not None
    return row


def test_each_state_has_the_seeds_number(place: Place) -> None:
    """1 and 2 before the PDF is here, 3 and 4 after, 5 done, 6 failed or cancelled."""
    jobs = [
        waiting(place, "registre-extraction"),
        running(place, "registre-extraction"),
        waiting(place),
        running(place),
    ]
    assert [seen(place, job)["status_id"] for job in jobs] == [1, 2, 3, 4]
    assert [seen(place, job)["ocr_attempts"] for job in jobs] == [0, 0, 0, 1]
    for status, number in (("succeeded", 5), ("failed", 6), ("cancelled", 6)):
        job = running(place)
        place.db.execute("UPDATE pipeline.jobs SET status = %s, completed_at = now() WHERE id = %s", (status, job))
        assert seen(place, job)["status_id"] == number


def test_the_seeds_monitoring_runs_as_written(place: Place) -> None:
    """Active workers by id, and the jobs they hold for too long."""
    mine = [running(place), running(place)]
    other = running(place, worker="worker-2")
    waiting(place)
    running(place, "registre-extraction")
    assert {row["ocr_worker_id"]: row["active_jobs"] for row in place.rows(ACTIVE_WORKERS)} == {
        "worker-1": 2,
        "worker-2": 1,
    }
    assert {row["id"] for row in place.rows(STALE_JOBS)} == {str(job) for job in (*mine, other)}


def test_the_reset_by_hand_takes_the_job_from_its_worker(place: Place) -> None:
    """Back to 3, no worker, no attempt charged, waiting to be sent; the former holder's fence is void."""
    job, bystander = running(place), running(place)
    fence = place.job(job)["fence"]
    changed = place.db.execute(RESET.format(f"'{job}'"))
    assert changed.rowcount == 1
    row = seen(place, job)
    assert (row["status_id"], row["ocr_worker_id"], row["ocr_attempts"]) == (3, None, 0)
    assert "reset by hand" in row["ocr_error"]
    assert place.count("SELECT count(*) FROM pipeline.outbox WHERE job_id = %s AND sent_at IS NULL", job) == 1
    assert not place.row("SELECT pipeline.hold(%s, %s) AS held", job, fence)["held"]  # type: ignore[index]
    assert seen(place, bystander)["status_id"] == 4
    assert place.db.execute(RESET.format(f"'{job}'")).rowcount == 1  # a repeat finds nothing to do


def test_a_claim_by_hand_is_refused_with_a_reason(place: Place) -> None:
    """Only a worker's claim has a fence and a liveness lock behind it; nothing changes."""
    job = waiting(place)
    with pytest.raises(psycopg.Error, match="cannot be claimed by hand") as refusal:
        place.db.execute(CLAIM, (str(job),))
    assert refusal.value.sqlstate == "PL040" and "workers claim" in str(refusal.value.diag.message_hint)
    assert (place.job(job)["status"], seen(place, job)["status_id"]) == ("pending", 3)
    first = waiting(place, "registre-extraction")
    with pytest.raises(psycopg.Error, match="cannot be claimed by hand"):
        place.db.execute("UPDATE extraction_queue SET status_id = 2 WHERE id = %s", (str(first),))


def test_the_loser_of_the_seeds_race_updates_nothing(place: Place) -> None:
    """A claim by hand of a document that is being read finds no row with status 3."""
    assert place.db.execute(CLAIM, (str(running(place)),)).fetchall() == []


@pytest.mark.parametrize("change", ["status_id = 5", "boosted_text = 'x'", "ocr_worker_id = 'me'", "status_id = NULL"])
def test_any_other_change_by_hand_is_refused(place: Place, change: str) -> None:
    """The view is a window, with one handle."""
    job = running(place)
    with pytest.raises(psycopg.Error, match="the only change by hand") as refusal:
        place.db.execute(f"UPDATE extraction_queue SET {change} WHERE id = %s", (str(job),))
    assert refusal.value.sqlstate == "PL041"


def test_an_insert_enqueues(place: Place) -> None:
    """And gives back the row as it then stands."""
    row = place.row("INSERT INTO extraction_queue (document_number) VALUES ('RF-1937-0118') RETURNING *")
    assert row is not None and (row["status_id"], row["status"]) == (1, "EN_ATTENTE")
    assert place.job(UUID(row["id"]))["body"] == {"document_number": "RF-1937-0118"}


def test_doubtful_pages_are_counted_and_named(place: Place) -> None:
    """In the view and in what the API and the dashboard show; a document without doubts has none of them."""
    doubt = "read with a confidence of 0.71"
    for expected in ([{"page": 2, "doubt": doubt}], []):
        job = running(place)
        entry, stored = Entry("RF-1", "Deed", "https://papers.test/1"), Stored("0" * 64 + ".pdf", "0" * 64, 9)
        pages = [PageText(n, "a", "a", 0.9, "x", doubt if n == 2 and expected else None) for n in (1, 2)]
        with database.engine().begin() as connection:
            save_pdf(job, entry, stored)(connection)
            save_text(job, pages, "a a")(connection)
            shown = stored_document(connection, job)
        row = seen(place, job)
        assert (row["ocr_doubtful_pages"], row["ocr_doubts"]) == (len(expected), expected)
        assert shown is not None and (shown["doubtful_pages"], shown["doubts"]) == (len(expected), expected)
    assert seen(place, waiting(place))["ocr_doubts"] is None


def test_a_cancel_takes_the_pages_with_it(place: Place) -> None:
    """What was read so far goes; what another job has read stays; the document is in error, with the reason."""
    job, other = running(place), running(place)
    for number in (job, other):
        place.db.execute(
            "INSERT INTO document_pages (job_id, page, text, boosted, engine, fence) VALUES (%s, 1, 'a', 'a', 'x', 1)",
            (number,),
        )
    assert seen(place, job)["text"] is None
    place.db.execute("SELECT pipeline.cancel(%s, 'wrong document')", (job,))
    assert [row["job_id"] for row in place.rows("SELECT job_id FROM document_pages")] == [other]
    assert (seen(place, job)["status_id"], seen(place, job)["ocr_error"]) == (6, "wrong document")
