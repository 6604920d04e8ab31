"""What is measured and told of a run, the bad network, and a small run on real workers."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from chaos import faults, subject, table
from chaos.fault import CATALOGUE, Kill
from chaos.proxy import Proxy
from chaos.reconcile import Attempt
from chaos.recovery import percentiles, recoveries
from chaos.run import run_plan
from chaos.stage import Stage
from chaos.wave import Size, Wave
from tests.chaos.moments import JOB, NOON, OTHER, at
from tests.place import Place, lives

# How many phases the workflows of the jobs that succeeded have, and how many of these jobs' attempts succeeded.
DONE = """SELECT (SELECT count(*) FROM pipeline.phases p WHERE p.workflow = j.workflow AND p.position > 0) AS phases,
        (SELECT count(*) FROM pipeline.attempts a WHERE a.job_id = j.id AND a.outcome = 'succeeded') AS attempts
    FROM pipeline.jobs j WHERE j.id = ANY (%s) AND j.status = 'succeeded'"""


def test_recovery_is_the_time_from_the_kill_to_the_next_attempt() -> None:
    """Of the jobs that the victim held then, and only while a thread was free elsewhere."""
    attempts = [
        Attempt(JOB, 1, "first", "crashed", "victim", at(-1), at(0.5)),
        Attempt(JOB, 2, "first", "succeeded", "other", at(0.6), at(2)),
        Attempt(OTHER, 1, "first", "succeeded", "victim", at(-3), at(-2)),
    ]
    kill = Kill("victim", NOON, frozenset({"other"}))
    assert [(r.job, r.seconds) for r in recoveries([kill], attempts, threads=1)] == [(JOB, 0.6)]
    busy = [*attempts, Attempt(OTHER, 2, "second", "succeeded", "other", at(-1), at(0.55))]
    assert recoveries([kill], busy, threads=1) == []
    assert percentiles([3.0, 1.0, 2.0]) == {"p50": 2.0, "p99": 3.0, "max": 3.0}


def test_the_table_is_written_between_the_pages_markers(tmp_path: Path) -> None:
    """A second run replaces the first one's, and nothing else."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    figures = table.summary(7, [Wave((CATALOGUE["queue purge"],), jobs=[JOB])])
    for _ in range(2):
        table.write_page(figures, "script/chaos", page)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert text.count("| queue purge | 1 | 1 |") == 1
    assert table.is_clean(figures) and set(figures) == {
        "seed",
        "jobs",
        "lost",
        "duplicated",
        "unexplained",
        "recovery_s",
        "faults",
    }


def test_one_finding_of_any_kind_spoils_the_result() -> None:
    """The exit code hangs on it."""
    for kind in ("lost", "duplicated", "unexplained"):
        wave = Wave((CATALOGUE["queue purge"],), jobs=[JOB])
        getattr(wave.findings, kind).append("something")
        assert not table.is_clean(table.summary(1, [wave]))


def test_slow_recovery_spoils_the_result() -> None:
    """Two seconds for 99 of 100 jobs of killed workers; without a kill there is nothing to measure."""
    figures = table.summary(1, [Wave((CATALOGUE["queue purge"],), jobs=[JOB])])
    for p99, clean in ((None, True), (2.0, True), (2.1, False)):
        assert table.is_clean({**figures, "recovery_s": {"p50": 0.5, "p99": p99, "max": p99}}) is clean


def test_the_proxy_passes_holds_and_cuts() -> None:
    """The bad network does what its modes say."""
    with socket.create_server(("127.0.0.1", 0)) as server, Proxy(server.getsockname()[1]) as proxy:
        threading.Thread(target=lambda: _echo(server), daemon=True).start()
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as client:
            client.sendall(b"one")
            assert client.recv(10) == b"one"
            with proxy.behaving("hold_down") as hit:
                assert hit == 1
                client.sendall(b"two")
                client.settimeout(0.3)
                try:
                    assert not client.recv(10), "nothing may come through"
                except TimeoutError:
                    pass
            client.settimeout(5)
            assert client.recv(10) == b"two"
            with proxy.behaving("cut"):
                assert client.recv(10) == b""


@pytest.mark.new_vhost
def test_kills_of_real_workers_leave_honest_books(place: Place, tmp_path: Path) -> None:
    """The whole path, small: workers, load, kills, reconciliation, recovery."""
    stage = Stage(place.servers, subject.find(None), tmp_path, seed=3, name=place.name, workers=2)
    try:
        stage.open()
        [wave] = run_plan(stage, faults.plan_of(["relay leader SIGKILL"]), Size(24, 4.0), quick=True)
        pids = [worker.pid for worker in stage.crew.living(stage.observer)]
    finally:
        stage.close()
    figures = table.summary(3, [wave])
    assert len(wave.kills) == 2 and len(wave.jobs) >= 8
    done = place.rows(DONE, wave.jobs)
    assert len(done) >= 8 and all(job["attempts"] == job["phases"] for job in done) and wave.outcomes["crashed"] >= 1
    assert table.is_clean(figures), figures
    assert pids and not any(lives(pid) for pid in pids)


def _echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    while piece := connection.recv(10):
        connection.sendall(piece)
