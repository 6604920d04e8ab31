"""What a process costs does not depend on how many workflows it serves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pika import BlockingConnection

from pipeline import submit
from tests.place import Place

# script/bench does the same with 300.
WORKFLOWS = 100
LAST = f"many{WORKFLOWS - 1:03d}"
QUEUES = [f"many{number:03d}.{phase}" for number in range(WORKFLOWS) for phase in ("one", "two", "three")]
THREADS = 60
# RabbitMQ writes 600 new queues to disk, beside whatever else the machine does.
LONG = 180


def start(place: Place, *queues: str) -> Any:
    settings = {
        "PIPELINE_WORKFLOWS": "tests.many_workflows",
        "TEST_WORKFLOWS": str(WORKFLOWS),
        "TEST_HOOKS": str(place.folder / "hooks"),
    }
    return place.worker(threads=8, queues=queues, settings=settings)


def all_consumed(rabbitmq: BlockingConnection, queues: list[str]) -> bool:
    with rabbitmq.channel() as channel:
        return all(channel.queue_declare(queue, passive=True).method.consumer_count for queue in queues)


def test_a_hundred_workflows_are_served_by_as_few_threads_as_one(place: Place, rabbitmq: BlockingConnection) -> None:
    """All 300 queues are consumed, the last workflow's jobs end, and Dramatiq's hooks see every message."""
    worker = start(place)
    jobs = [submit(None, workflow) for workflow in ("many000", "many050", LAST)]
    assert {row["status"] for row in place.finished(*jobs, timeout=LONG)} == {"succeeded"}
    assert all_consumed(rabbitmq, QUEUES)
    [pid] = place.pids()
    assert len(list(Path(f"/proc/{pid}/task").iterdir())) <= THREADS
    worker.terminate()
    worker.wait()
    seen = Counter((place.folder / "hooks").read_text().splitlines())
    for hook in ("before_process_message", "after_process_message", "before_ack", "after_ack"):
        assert seen[f"{hook} {LAST}.one"] == 1
    for hook in ("after_consumer_thread_boot", "before_consumer_thread_shutdown"):
        threads = sorted(line for line in seen.elements() if line.startswith(hook))
        assert threads == [f"{hook} all phases", f"{hook} pipeline.sweeps"]


@pytest.mark.new_vhost
def test_a_process_that_is_told_its_queues_consumes_no_others(place: Place) -> None:
    """``dramatiq pipeline.actors --queues``: its one thread serves those, and nobody the sweeps."""
    queues = QUEUES[-3:]
    start(place, *queues)
    assert place.finished(submit(None, LAST), timeout=60)[0]["status"] == "succeeded"
    assert set(place.servers.rabbitmq.queue_counts(place.vhost)) == {*queues, *(f"{queue}.XQ" for queue in queues)}
