"""A process whose threads are all busy leaves messages to those that have free ones."""

from __future__ import annotations

from pipeline import submit
from tests.place import Place


def test_what_comes_to_an_idle_queue_of_a_busy_process_is_done_by_another(place: Place) -> None:
    """It keeps its consumers of idle queues; a message that reaches one of them goes back at once, and it listens no more."""
    place.worker(threads=1)
    [busy] = place.pids()
    long = submit(None, "triple", {"seconds": 20})
    place.running(long)
    waiting = submit(None, "triple", {"seconds": 0})
    place.until(lambda: ready(place, "triple.first") == (1, 0), what="the message to be given back")
    late = submit(None, "single", {"do": "nothing"})
    place.until(lambda: ready(place, "single.act") == (1, 0), what="the message to be refused")
    place.worker(threads=1)
    place.finished(waiting, late, timeout=15)
    assert {pid for job, *_, pid in place.executions() if job != str(long)}.isdisjoint({busy})
    assert place.job(long)["status"] == "running"


def ready(place: Place, queue: str) -> tuple[int, int]:
    """Messages that nobody has, and consumers."""
    channel = place.channel()
    try:
        answer = channel.queue_declare(queue, passive=True).method
        return answer.message_count, answer.consumer_count
    finally:
        channel.connection.close()
