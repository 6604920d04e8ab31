"""Real kills of real worker processes."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from pipeline import submit, submit_many
from tests.forked import supervised
from tests.pace import pace
from tests.place import Place, lives


def test_a_killed_workers_job_runs_elsewhere_within_two_seconds(place: Place) -> None:
    """G7: redelivery and the dropped advisory lock hand the job over at once; no timeout is involved."""
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 30})
    place.running(job)
    place.worker(threads=2)
    with pace(place.database_url) as machine:
        took = place.kill_holder(job)
    print(f"recovery after kill -9: {took:.3f} s")
    [row] = place.finished(job)
    assert took < machine.allows(2)
    assert (row["status"], row["attempts"], row["crashes"]) == ("succeeded", 0, 1)
    assert [a["outcome"] for a in place.attempts(job)] == ["crashed", "succeeded"]
    assert place.count("SELECT count(*) FROM ledger") == 1


def test_a_frozen_workers_late_completion_changes_nothing(place: Place) -> None:
    """G2: SIGSTOP past the lease, SIGCONT: the old fence writes nothing."""
    place.db.execute("UPDATE pipeline.phases SET stale_after = interval '2 seconds'")
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 1, "later": 0.1})
    place.running(job)
    victim = place.holder(job)
    os.kill(victim, signal.SIGSTOP)
    # The frozen one leads the relay too, and keeps its lock; a successor deposes it once its heartbeat is a
    # minute old. The test does not wait for that.
    place.worker(threads=1)
    place.db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'pipeline relay%'"
    )
    [row] = place.finished(job, timeout=40)
    before = place.attempts(job)
    os.kill(victim, signal.SIGCONT)
    place.until(
        lambda: place.count("SELECT (counters->>'discarded')::int FROM pipeline.workers WHERE pid = %s", victim),
        20,
        "the late result",
    )
    assert place.job(job)["fence"] == row["fence"] == 2
    # It was never dead: the crash that was counted for it is taken off again.
    kept = ("job_id", "fence", "attempt", "started_at", "finished_at")
    after = place.attempts(job)
    assert [[one[name] for name in kept] for one in after] == [[one[name] for name in kept] for one in before]
    assert [one["outcome"] for one in before] == ["stale", "succeeded"] or before[0]["outcome"] == "crashed"
    place.until(lambda: place.attempts(job)[0]["outcome"] == "released", 10, "the refund")
    assert place.count("SELECT count(*) FROM ledger WHERE fence = 1") == 0
    assert place.count("SELECT count(*) FROM ledger") == 1


def test_a_worker_that_only_loses_rabbitmq_keeps_its_job(place: Place) -> None:
    """No second run, no budget spent: the redelivered message meets a living holder and is acknowledged."""
    place.worker(threads=2)
    place.worker(threads=2)
    job = submit(None, "single", {"do": "sleep", "seconds": 3})
    place.running(job)
    assert place.until(lambda: place.servers.rabbitmq.close_connections(place.vhost), 10, "connections to close")
    [row] = place.finished(job)
    assert (row["status"], row["fence"], row["attempts"], row["crashes"]) == ("succeeded", 1, 0, 0)
    assert len(place.executions()) == 1
    place.until(lambda: place.counter("refused.already_running") >= 1, 10, "the duplicate to be counted")


@pytest.mark.parametrize(("many", "most"), [(300, 7), pytest.param(1000, 22, marks=pytest.mark.slow)])
@pytest.mark.timeout(400)
def test_jobs_survive_kills_of_workers(place: Place, many: int, most: int) -> None:
    """G1, G3, G6: all succeed, each phase's effect exists once, no error budget spent, nothing poisoned."""
    supervisor = supervised(place, 3, threads=4)
    jobs = submit_many(None, "triple", [{"seconds": 0.02, "n": n} for n in range(many)])
    supervisor.start()
    try:
        chance, kills, leaders = random.Random(7), 0, 0
        while kills < most or place.count("SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL") > 0:
            place.until(lambda: len(place.booted()) >= 2, 30, "workers to be back")
            if kills < most:
                leader = place.row("""SELECT w.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                    JOIN pipeline.workers w ON a.application_name = 'pipeline relay ' || w.no
                    WHERE a.datname = current_database() AND l.granted
                      AND l.locktype = 'relation' AND l.relation = 'pipeline.relay_leader'::regclass""")
                booted = place.booted()
                leads = leader and leader["pid"] in booted and kills % 5 == 2
                victim = leader["pid"] if leader and leads else chance.choice(booted)
                leaders += bool(leader and victim == leader["pid"])
                os.kill(victim, signal.SIGKILL)
                kills += 1
            time.sleep(chance.uniform(0.1, 0.8))
        rows = place.finished(*jobs, timeout=120)
    finally:
        supervisor.stop()
    taken = place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'crashed'")
    print(f"{kills} workers killed, {leaders} of them led the relay; {taken} attempts were cut off and done again")
    assert {row["status"] for row in rows} == {"succeeded"}
    assert place.count("SELECT count(*) FROM ledger") == 3 * many
    assert place.count("SELECT count(DISTINCT (job_id, phase)) FROM ledger") == 3 * many
    assert place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome NOT IN ('succeeded', 'crashed')") == 0
    assert leaders >= most // 7
    assert place.count("SELECT count(*) FROM pipeline.outbox") == 0


def test_the_workers_of_a_killed_master_stop_by_themselves(place: Place) -> None:
    """No orphan keeps working when Dramatiq's master process dies."""
    master = place.worker(threads=1)
    [pid] = place.pids()
    master.send_signal(signal.SIGKILL)
    master.wait()
    place.until(lambda: not lives(pid), 15, "the orphan to stop")
