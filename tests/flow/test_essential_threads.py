"""A worker whose essential thread fails ends, so that it is noticed."""

from __future__ import annotations

import subprocess
import sys

from pipeline.store.gateway.liveness import Report
from pipeline.worker.essential import EXIT_CODE
from tests.place import ROOT, Place

FAILS = """
from time import sleep
from pipeline.worker.essential import essential_thread
def run() -> None:
    raise ZeroDivisionError("nobody thought of this")
essential_thread("pipeline-test", run).start()
sleep(30)
"""


def test_the_process_ends_and_says_why() -> None:
    """At once, with the reason and the thread's name."""
    ended = subprocess.run(
        [sys.executable, "-c", FAILS], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
    )
    assert ended.returncode == EXIT_CODE
    said = ended.stdout + ended.stderr
    assert "pipeline-test" in said
    assert "nobody thought of this" in said


def silent() -> Report:
    return Report(None, "{}", [], "{}", 0)


def test_the_threads_that_claim_and_beat_are_essential(place: Place) -> None:
    """Those of a real worker: what they run is guarded."""
    from pipeline.broker.outbound import Outbound  # noqa: F401  the worker's own imports, for their side effects
    from pipeline.journey.attempt import Held
    from pipeline.store.group_commit import Committer
    from pipeline.worker.deadlines import Watch
    from pipeline.worker.essential import essential_thread
    from pipeline.worker.liveness import Liveness

    liveness = Liveness("", "w", held=Held(), threads=1, queues=[], beat=1, report=silent)
    committer = Committer("", "w", 1, lambda batch: None, lambda completion, error: None, thread=essential_thread)
    for thread in (liveness._thread, committer._thread, Watch(Held(), print)._thread):
        assert thread._target.__module__ == "pipeline.worker.essential"  # type: ignore[attr-defined]
