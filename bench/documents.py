"""Two OCR workers against one, on the same set of documents: the ratio of their times. The seed's headline is 0.5."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from bench.lab import ROOT, cli, database, one, until, workers
from pipeline.dev import services

DOCUMENT, PAGES = "RF-1937-0117", 6
SPAN = "SELECT extract(epoch FROM max(finished_at) - min(started_at)) FROM pipeline.attempts WHERE phase = 'ocr'"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__)
    parser.add_argument("--documents", type=int, default=4, help=f"of {PAGES} pages each (default 4)")
    parser.add_argument("--rounds", type=int, default=1, help="one worker, then two, so many times (default 1)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
    ):
        from sandbox import running_sandbox

        with running_sandbox() as sandbox:
            os.environ.update(services.environment(servers), PYTHONPATH=str(ROOT), PIPELINE_LOG_LEVEL="ERROR")
            os.environ.update(PIPELINE_SANDBOX_URL=sandbox.url, PIPELINE_DOCUMENT_FOLDER=f"{folder}/documents")
            cli("migrate")
            ratios = [round_of(options.documents) for _ in range(options.rounds)]
    print(f"two workers take {statistics.median(ratios):.2f} of the time of one")


def round_of(documents: int) -> float:
    """Time with two workers divided by time with one."""
    alone, together = measure(1, documents), measure(2, documents)
    print(
        f"{documents} documents of {PAGES} pages: one worker {alone:.1f} s, two workers {together:.1f} s, "
        f"ratio {together / alone:.2f}"
    )
    return together / alone


def measure(count: int, documents: int) -> float:
    """Seconds from the first claim of the ocr phase to the last page."""
    os.environ["OCR_WORKER_COUNT"] = str(count)
    cli("migrate")
    from pipeline import submit_many

    with database() as db:
        db.execute("TRUNCATE pipeline.jobs, pipeline.outbox, pipeline.attempts CASCADE")
        with workers():
            submit_many(None, "document", [{"document_number": DOCUMENT}] * documents)
            until(lambda: one(db, "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NOT NULL") == documents)
            assert one(db, "SELECT count(*) FROM documents WHERE pages = %s", PAGES) == documents
            return float(one(db, SPAN))


if __name__ == "__main__":
    main()
