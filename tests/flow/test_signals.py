"""F21: whatever tells a worker to stop, alone or together, costs its jobs nothing and ends within a container's patience."""

from __future__ import annotations

import os
import signal
import time

import pytest

from pipeline import submit
from tests.place import Place, lives

CONTAINER_PATIENCE = 10.0


@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGHUP,), (signal.SIGHUP, signal.SIGTERM), (signal.SIGTERM, signal.SIGHUP)],
    ids=lambda numbers: "+".join(number.name for number in numbers),
)
def test_a_hang_up_of_the_group_costs_no_crash(place: Place, numbers: tuple[signal.Signals, ...]) -> None:
    """Each process of the group gets it, and the master forwards another: the job is released and runs again."""
    worker = place.worker(threads=1, PIPELINE_SHUTDOWN_GRACE_SECONDS="0.2")
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    holder = place.holder(job)
    for number in numbers:
        os.killpg(worker.pid, number)
    place.until(lambda: not lives(holder), 20, "the worker to stop")
    place.worker(threads=1)
    [row] = place.finished(job)
    assert (row["status"], row["attempts"], row["crashes"]) == ("succeeded", 0, 0)
    assert [attempt["outcome"] for attempt in place.attempts(job)] == ["released", "succeeded"]


def test_a_whole_stop_fits_into_a_containers_patience(place: Place) -> None:
    """With default settings: grace, hand-back, goodbye."""
    worker = place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    began = time.monotonic()
    os.killpg(worker.pid, signal.SIGTERM)
    assert worker.wait(30) == 0
    took = time.monotonic() - began
    print(f"stopped after {took:.1f} s")
    assert took < CONTAINER_PATIENCE
    assert [attempt["outcome"] for attempt in place.attempts(job)] == ["released"]
