"""A worker carries its job through all phases: one message, and no less safe."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.rows import dict_row

from pipeline import submit, submit_many
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Held
from pipeline.journey.left_behind import release
from tests.attempts import attempt
from tests.db import steps
from tests.pace import pace
from tests.place import Place

pytestmark = pytest.mark.usefixtures("with_more")

if TYPE_CHECKING:
    pass


def test_a_worker_carries_a_job_through_with_one_message(place: Place) -> None:
    """The send number counts the messages: one to begin with, and the number that voids it at the end."""
    place.worker(threads=2)
    jobs = [submit(None, name) for name in ("plain", "triple")]
    for row in place.finished(*jobs):
        assert (row["status"], row["send"], row["fence"], row["message_phase_id"]) == ("succeeded", 2, 3, None)
    assert place.count("SELECT count(*) FROM ledger") == 3
    for job in jobs:
        later = place.attempts(job)[1:]
        assert all(one["ready_at"] == one["sent_at"] == one["started_at"] for one in later)
    place.until(lambda: place.depth("plain.alpha") + place.depth("triple.first") == 0, 10, "the acknowledgements")


def test_a_job_that_began_is_carried_through_before_others_begin(place: Place) -> None:
    """G9, finish-first: also while others wait for the thread."""
    jobs = submit_many(None, "triple", [{"seconds": 0.1}] * 5)
    place.worker(threads=1)
    assert [row["send"] for row in place.finished(*jobs)] == [2] * 5
    started = [phase for _, phase, _, _ in place.executions()]
    assert started == ["first", "second", "third"] * 5


def test_a_workflow_may_let_others_begin_first(place: Place) -> None:
    """G9, start-first: with one thread and five jobs, only the last ones find nobody waiting."""
    place.worker(threads=1)
    rows = place.finished(*submit_many(None, "starter", [{"seconds": 0.1}] * 5))
    assert rows[0]["send"] == 4
    started = [phase for _, phase, _, _ in place.executions()]
    assert started[:5] == ["first"] * 5


def test_one_of_a_higher_priority_goes_first_at_the_end_of_a_phase(place: Place) -> None:
    """G9: the job that began waits at the gate meanwhile."""
    told = place.folder / "go"
    place.worker(threads=1)
    slow = submit(None, "triple", {"file": str(told)})
    place.until(place.executions, 20, "it to begin")
    urgent = submit(None, "triple", priority=5)
    place.until(lambda: place.counts("triple.first") == (0, 2), 20, "both messages to be in the worker")
    told.touch()
    place.finished(slow, urgent)
    started = [(job, phase) for job, phase, _, _ in place.executions()]
    assert started[:2] == [(str(slow), "first"), (str(urgent), "first")]
    assert place.job(slow)["send"] > 2


def test_a_worker_that_does_not_serve_the_next_phase_sends_a_message(place: Place) -> None:
    """A process for one queue only."""
    place.worker(threads=2, queues=("pair.first",))
    job = submit(None, "pair")
    place.until(lambda: place.job(job)["phase"] == "act", 20, "the hand-over")
    place.until(lambda: place.depth("pair.act") == 1, 10, "the message")
    place.worker(threads=2)
    assert [row["send"] for row in place.finished(job)] == [3]


def test_a_continued_job_survives_its_worker(place: Place) -> None:
    """G7: its message comes back in the first queue and sends it to the second, where only the second phase crashed."""
    place.worker(threads=1)
    job = submit(None, "pair", {"do": "rest", "at": 2, "seconds": 60})
    place.until(lambda: len(place.executions()) == 2, 20, "the second phase")
    place.worker(threads=2)
    with pace(place.database_url) as machine:
        took = place.kill_holder(job)
    print(f"recovery after kill -9: {took:.3f} s")
    [row] = place.finished(job)
    assert took < machine.allows(2)
    assert (row["status"], row["attempts"], row["crashes"]) == ("succeeded", 0, 1)
    assert [(one["phase"], one["outcome"]) for one in place.attempts(job)] == [
        ("first", "succeeded"),
        ("act", "crashed"),
        ("act", "succeeded"),
    ]
    assert place.count("SELECT count(*) FROM ledger") == 2
    place.until(lambda: place.depth("pair.first") + place.depth("pair.act") == 0, 10, "the queues to be empty")


def test_a_continued_job_stays_when_only_rabbitmq_is_lost(place: Place) -> None:
    """The redelivered message meets a living holder, though in another phase."""
    place.worker(threads=2)
    place.worker(threads=2)
    job = submit(None, "pair", {"do": "rest", "at": 2, "seconds": 3})
    place.until(lambda: len(place.executions()) == 2, 20, "the second phase")
    assert place.until(lambda: place.servers.rabbitmq.close_connections(place.vhost), 10, "connections to close")
    [row] = place.finished(job)
    assert (row["status"], row["fence"], row["crashes"]) == ("succeeded", 2, 0)
    assert len(place.executions()) == 2
    place.until(lambda: place.counter("refused.already_running") >= 1, 10, "the duplicate to be counted")


def test_a_failing_attempt_retries_in_its_own_queue(place: Place) -> None:
    """The carrying message is acknowledged; the retry has one of its own."""
    place.worker(threads=2)
    job = submit(None, "pair", {"do": "flaky"})
    [row] = place.finished(job)
    assert (row["status"], row["attempts"], row["send"]) == ("succeeded", 1, 3)
    assert [one["outcome"] for one in place.attempts(job)] == ["succeeded", "retried", "succeeded"]
    place.until(lambda: place.depth("pair.first") + place.depth("pair.act") == 0, 10, "the queues to be empty")


def test_a_dead_letter_lies_in_its_own_phases_queue(place: Place) -> None:
    """One failure ends the job there: its phase is entered by message only."""
    place.worker(threads=2)
    job = submit(None, "strict", {"do": "fail"})
    assert [row["status"] for row in place.finished(job)] == ["failed"]
    place.until(lambda: place.depth("strict.act.XQ") == 1, 10, "the dead letter")
    assert place.depth("strict.first.XQ") == 0


def test_a_shutdown_releases_a_continued_job(place: Place) -> None:
    """At no cost, and to the queue where it belongs."""
    worker = place.worker(threads=1, PIPELINE_SHUTDOWN_GRACE_SECONDS="0.2")
    job = submit(None, "pair", {"do": "rest", "at": 2, "seconds": 20})
    place.until(lambda: len(place.executions()) == 2, 20, "the second phase")
    worker.send_signal(signal.SIGTERM)
    place.worker(threads=1)
    [row] = place.finished(job, timeout=60)
    assert (row["status"], row["attempts"], row["crashes"]) == ("succeeded", 0, 0)
    assert [one["outcome"] for one in place.attempts(job)] == ["succeeded", "released", "succeeded"]


def test_a_continued_job_that_no_thread_took_up_is_released_at_the_end(place: Place) -> None:
    """The threads had stopped when its commit came: no other worker should have to find it."""
    with psycopg.connect(place.database_url, autocommit=True, row_factory=dict_row) as db:
        held = steps.held(db, "triple")
        fence = steps.complete(db, held, continuing="triple.second")["fence"]
    mine = Held()
    mine.add(attempt(PhaseSpec("triple", "second"), held.job, fence))
    release(mine)
    row = place.job(held.job)
    assert (row["status"], row["phase"], row["attempts"], row["crashes"]) == ("pending", "second", 0, 0)
    assert [one["outcome"] for one in place.attempts(held.job)] == ["succeeded", "released"]
    assert mine.all() == []
