"""The servers die under the jobs: RabbitMQ restarted or wiped, PostgreSQL restarted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from pipeline import job, submit, submit_many
from pipeline.dev.services import Servers
from tests import shared
from tests.apis import running_api
from tests.databases import Databases
from tests.place import Place


# One pair of servers for all of them, in one process.
@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with shared.servers_of_their_own(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="module")
def databases(servers: Servers) -> Databases:
    return Databases(servers.postgres, shared.TEMPLATE)


def load(place: Place, n: int = 60) -> list[UUID]:
    """Jobs in all phases, some running, some queued, some waiting."""
    jobs = submit_many(None, "triple", [{"seconds": 0.2, "n": i} for i in range(n)])
    place.until(lambda: place.count("SELECT count(*) FROM ledger") >= 15, 30, "the work to be under way")
    return jobs


def all_well(place: Place, jobs: list[UUID]) -> None:
    rows = place.finished(*jobs, timeout=90)
    assert {row["status"] for row in rows} == {"succeeded"}
    assert place.count("SELECT count(*) FROM ledger") == 3 * len(jobs)
    assert place.count("SELECT count(DISTINCT (job_id, phase)) FROM ledger") == 3 * len(jobs)
    assert place.count("SELECT count(*) FROM pipeline.attempts WHERE outcome IN ('retried', 'crashed', 'stale')") == 0


def test_every_job_finishes_when_rabbitmq_is_killed_and_started_again(place: Place) -> None:
    """G1: RabbitMQ's death costs time, never a job, and no budget."""
    place.worker(threads=4, processes=2)
    jobs = load(place)
    place.servers.rabbitmq.kill()
    place.servers.rabbitmq.start()
    started = time.monotonic()
    all_well(place, jobs)
    print(f"all done {time.monotonic() - started:.1f} s after the broker was back")


def test_every_job_finishes_when_rabbitmqs_data_are_wiped(place: Place) -> None:
    """G1: even what RabbitMQ had accepted and lost is sent again, under a new number."""
    place.worker(threads=4, processes=2)
    jobs = load(place)
    place.servers.rabbitmq.stop()
    place.servers.rabbitmq.wipe()
    place.servers.rabbitmq.start()
    place.servers.rabbitmq.create_vhost(place.vhost)
    started = time.monotonic()
    all_well(place, jobs)
    print(f"all done {time.monotonic() - started:.1f} s after the empty broker was back")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_every_job_finishes_when_postgresql_is_restarted(place: Place, mode: str) -> None:
    """G1: claims, completions and heartbeats wait for PostgreSQL and continue; nobody is taken for dead."""
    place.worker(threads=4, processes=2)
    jobs = load(place)
    place.servers.postgres.restart(mode)  # type: ignore[arg-type]
    all_well(place, jobs)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_whoever_waits_for_a_result_waits_through_a_restart_of_postgresql(place: Place, mode: str) -> None:
    """One job ends before the restart is over for the waiter, one after it."""
    place.worker(threads=4)
    jobs = submit_many(None, "single", [{"do": "sleep", "seconds": seconds} for seconds in (0.5, 4)])
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(job(one).result, 60) for one in jobs]
        place.until(
            lambda: place.count("SELECT count(*) FROM pipeline.outbox WHERE awaited") == 2, 20, "two jobs to be awaited"
        )
        place.servers.postgres.restart(mode)  # type: ignore[arg-type]
        assert [one.result() for one in waiting] == [{"fence": 1}, {"fence": 1}]


def test_a_client_that_waits_over_http_waits_through_a_restart_of_postgresql(place: Place) -> None:
    """In one request: it is answered when the job ends, and not before."""
    place.worker(threads=2)
    place.db.execute("SELECT FROM pipeline.pause_phases('single', 'act', 'infinity')")
    one = submit(None, "single")
    with running_api(place) as api, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(api.get, f"/v1/jobs/{one}/result", params={"wait": 60})
        place.until(lambda: place.count("SELECT count(*) FROM pipeline.outbox WHERE awaited"), 20, "somebody to wait")
        place.servers.postgres.restart("immediate")
        assert not asked.done()
        place.rows("SELECT * FROM pipeline.resume_phases('single', 'act')")
        assert (asked.result().status_code, asked.result().json()["result"]) == (200, {"fence": 1})


def test_a_delay_of_a_day_holds_nothing_unacknowledged_and_survives_a_restart_of_everything(place: Place) -> None:
    """The wait lives in PostgreSQL alone."""
    job = submit(None, "single", {"do": "wait", "seconds": 86400, "times": 1})
    worker = place.worker(threads=1)
    place.until(lambda: place.job(job)["wait_reason"] == "rate_limit", 20, "the job to be snoozed")
    place.until(
        lambda: place.servers.rabbitmq.queue_counts(place.vhost).get("single.act") == (0, 0), 15, "an empty queue"
    )
    worker.terminate()
    worker.wait(30)
    place.servers.rabbitmq.kill()
    place.servers.postgres.restart("fast")
    place.servers.rabbitmq.start()
    row = place.row("SELECT due_at - now() AS left FROM pipeline.outbox WHERE job_id = %s", job)
    assert row is not None and 86000 < row["left"].total_seconds() < 86400
    place.worker(threads=1)
    assert place.job(job)["status"] == "pending"
    place.db.execute("UPDATE pipeline.outbox SET due_at = now() WHERE job_id = %s", (job,))
    place.db.execute("SELECT pg_notify('pipeline_relay', '')")
    [row] = place.finished(job)
    assert (row["status"], row["attempts"], row["crashes"]) == ("succeeded", 0, 0)
