"""G1 with default settings and no management API: minutes, not hours, and nothing is sent twice without need."""

from __future__ import annotations

import time

import pytest
from pika import BlockingConnection

from pipeline import submit_many
from tests.messages import ready
from tests.place import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
QUEUE = "single.act"


@pytest.mark.parametrize("lose", ["queue_purge", "queue_delete"])
def test_what_a_queue_lost_is_done_within_five_minutes(users: Place, rabbitmq: BlockingConnection, lose: str) -> None:
    """Two of twelve jobs run when the other messages vanish."""
    users.worker(threads=2)
    jobs = submit_many(None, "single", [{"do": "sleep", "seconds": 5}] * 12)
    users.until(lambda: users.statuses().get("act/running") == 2, what="two to run")
    users.until(lambda: users.depth(QUEUE) >= 12, what="all messages")
    # A process whose threads are all busy gives back what it has not begun; only then can RabbitMQ lose it.
    users.until(lambda: ready(rabbitmq, QUEUE)[0] == 10, what="ten")
    started = time.monotonic()
    getattr(rabbitmq.channel(), lose)(QUEUE)
    rows = users.finished(*jobs, timeout=300)
    print(f"{lose}: all done {time.monotonic() - started:.0f} s after the loss")
    assert {row["status"] for row in rows} == {"succeeded"}
    assert len(users.executions()) == len(jobs)


def test_a_flowing_load_is_sent_once(users: Place) -> None:
    """Short jobs on four threads for two minutes: every look meets messages on their way."""
    users.worker(threads=4)
    ends, done = time.monotonic() + 120, 0
    while time.monotonic() < ends:
        jobs = submit_many(None, "triple", [{"seconds": 0.01}] * 400)
        users.finished(*jobs, timeout=120)
        done += len(jobs)
    print(f"{done} jobs of three phases")
    assert "sent again" not in users.logs()
