"""F2: an attempt whose thread is stuck in a call that nothing can interrupt ends all the same."""

from __future__ import annotations

import signal
from time import monotonic

import psycopg
import pytest

from pipeline import cancel, submit
from tests.place import Place, lives

STUCK = "SELECT sum(stuck) FROM pipeline.workers"


@pytest.mark.parametrize("where", ["sleep", "socket", "c"])
def test_a_time_limit_ends_an_attempt_that_is_stuck(users: Place, where: str) -> None:
    """Settled within the limit and five seconds, as an application error; the job succeeds in another thread."""
    users.worker(threads=4)
    job = submit(None, "brief", {"do": "blocked", "in": where})
    users.until(users.executions, 20, "it to begin")
    started = monotonic()
    users.until(lambda: users.attempts(job), 20, "the settlement")
    print(f"stuck in {where}, limit 2 s: settled after {monotonic() - started:.1f} s")
    assert monotonic() - started < 2 + 5
    [row] = users.finished(job)
    assert (row["status"], row["crashes"], row["fence"]) == ("succeeded", 0, 2)
    assert [one["outcome"] for one in users.attempts(job)] == ["retried", "succeeded"]
    assert users.count("SELECT count(*) FROM ledger") == 1
    assert "stuck in a call that cannot be interrupted" in users.logs()
    users.until(lambda: users.count(STUCK) == 1, 30, "the stuck thread to be shown")


def test_the_process_is_as_wide_as_before(users: Place) -> None:
    """A new thread takes the place of the stuck one, and the pool has its processor back."""
    users.worker(threads=4)
    blocked = submit(None, "brief", {"do": "blocked"})
    users.until(lambda: users.attempts(blocked), 20, "the settlement")
    assert users.count("SELECT count(*) FROM pipeline.processors WHERE state <> 'idle'") == 0
    users.finished(blocked)
    together = [submit(None, "everyday", {"do": "sleep", "seconds": 3, "n": n}) for n in range(4)]
    users.until(
        lambda: users.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'running'") == 4,
        10,
        "four at the same time",
    )
    users.finished(*together)


def test_a_cancel_frees_the_thread_and_the_processor(users: Place) -> None:
    """Ten cancelled ones held all threads, and nothing showed it."""
    users.worker(threads=4)
    job = submit(None, "everyday", {"do": "blocked"})
    users.until(users.executions, 20, "it to begin")
    assert cancel(None, job)
    users.until(lambda: users.counter("stuck") == 1, 60, "the stuck thread to be counted")
    users.until(lambda: users.depth("everyday.usual") == 0, 10, "the acknowledgement")
    assert users.job(job)["status"] == "cancelled"


@pytest.mark.parametrize("where", ["python", "lock"])
def test_a_write_is_bounded_too(users: Place, where: str) -> None:
    """In Python, or waiting for a lock: it is cancelled on the server, nothing of it stays, and the job continues."""
    users.worker(threads=4)
    with psycopg.connect(users.database_url) as other:
        other.execute("UPDATE rows_to_lock SET n = n WHERE id = 1")
        job = submit(None, "brief", {"do": "blocked_write", "in": where})
        users.until(lambda: users.attempts(job), 30, "the settlement")
        [row] = users.finished(job)
    assert (row["status"], row["crashes"], row["attempts"]) == ("succeeded", 0, 1)
    assert users.rows("SELECT fence FROM ledger") == [{"fence": 2}]


def test_a_deploy_with_stuck_threads_costs_no_crash(users: Place) -> None:
    """The worker stops within a container's ten seconds, and its jobs wait for another at no cost."""
    worker = users.worker(threads=4)
    jobs = [submit(None, "everyday", {"do": "blocked", "n": n}) for n in range(2)]
    users.until(lambda: len(users.executions()) == 2, 20, "both to begin")
    started = monotonic()
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)
    print(f"stopped with two stuck threads after {monotonic() - started:.1f} s")
    assert monotonic() - started < 20, "twice a container's patience, for a busy machine"
    assert [users.job(job)["crashes"] for job in jobs] == [0, 0]
    users.worker(threads=4)
    assert {row["status"] for row in users.finished(*jobs)} == {"succeeded"}
    assert users.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'crashed'") == 0


def test_a_process_half_of_whose_threads_are_stuck_drains_and_exits(users: Place) -> None:
    """Whoever supervises it starts another; its exit code says that it did not leave by itself."""
    worker = users.worker(threads=2)
    [pid] = users.pids()
    job = submit(None, "brief", {"do": "blocked"})
    assert worker.wait(40) != 0
    users.until(lambda: not lives(pid), 10, "the process to end")
    users.worker(threads=2)
    assert users.finished(job)[0]["crashes"] == 0


def test_what_a_stuck_thread_still_does_is_void(users: Place) -> None:
    """It wakes up after its job was settled without it: no effect, no second acknowledgement."""
    users.worker(threads=4)
    job = submit(None, "brief", {"do": "rest", "at": 1, "seconds": 9})
    assert users.finished(job, timeout=40)[0]["fence"] == 2
    users.until(lambda: users.count(STUCK) == 0 and users.counter("stuck") == 1, 60, "the thread to come back")
    others = [submit(None, "everyday", {"n": n}) for n in range(8)]
    users.finished(*others)
    assert users.rows("SELECT fence FROM ledger WHERE job_id = %s", job) == [{"fence": 2}]
    assert "closed the channel" not in users.logs()
