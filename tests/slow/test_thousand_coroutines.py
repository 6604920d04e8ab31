"""A thousand coroutines in flight in one process: killed, and cancelled."""

from __future__ import annotations

import os
import signal
import time

import pytest

from pipeline import submit_many
from tests.place import Place

pytestmark = pytest.mark.usefixtures("with_steps")

MANY = 1000
RUNNING = "SELECT count(*) FROM pipeline.jobs WHERE status = 'running' AND workflow = 'swift'"
# Whoever runs alone after a crash needs a place of its own kind: so many seconds lay between the end of the attempt that
# had the place before and the beginning of this one.
GAPS = """SELECT percentile_disc(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY gap) AS gaps FROM (
    SELECT extract(epoch FROM a.started_at - (SELECT max(b.finished_at) FROM pipeline.attempts b
        WHERE b.finished_at < a.started_at AND b.finished_at >= %s)) AS gap
    FROM pipeline.attempts a WHERE a.fence = 2 AND a.phase = 'first' AND a.outcome = 'succeeded') g"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_process_with_a_thousand_coroutines(users: Place) -> None:
    """Each runs elsewhere as soon as there is a place for it, and its effect is there once."""
    many = {"PIPELINE_ASYNC_CONCURRENCY": str(MANY)}
    users.worker(threads=8, settings=many)
    submit_many(None, "swift", [{"seconds": 600, "once": True}] * MANY)
    users.until(lambda: users.count(RUNNING) == MANY, 120, "all places to be taken")
    [victim] = users.pids()
    users.worker(threads=8, settings=many)
    began = users.row("SELECT clock_timestamp() AS at")
    assert began
    os.kill(victim, signal.SIGKILL)
    killed = time.monotonic()
    elsewhere = "SELECT count(*) FROM pipeline.attempts WHERE fence > 1 AND phase = 'first' AND outcome = 'succeeded'"
    users.until(lambda: users.count(elsewhere) > 0, 60, "the first of them to run elsewhere")
    print(f"\nthe first had run elsewhere {time.monotonic() - killed:.1f} s after the kill")
    users.until(lambda: users.count(elsewhere) == MANY, 600, "all of them to run elsewhere")
    found = users.row(GAPS, began["at"])
    assert found
    print(
        f"a free place was taken within {found['gaps']} s (p50, p99, max); all ran in {time.monotonic() - killed:.0f} s"
    )
    assert users.count("SELECT count(*) FROM ledger WHERE phase = 'first'") == MANY
    assert users.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'crashed'") == MANY


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_running_coroutines_are_cancelled(users: Place) -> None:
    """None keeps an effect, and their places are free."""
    users.worker(processes=2)
    jobs = submit_many(None, "swift", [{"seconds": 600}] * MANY)
    users.until(lambda: users.count(RUNNING) == MANY, 120, "all of them to run")
    began = time.monotonic()
    assert users.count("SELECT pipeline.cancel_many(%s)", jobs) == MANY
    done = submit_many(None, "swift", [{"seconds": 0}] * 100)
    ended = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND status = 'succeeded'"
    users.until(lambda: users.count(ended, done) == len(done), 120, "others to have their places")
    print(f"\n{MANY} cancelled; 100 others were done {time.monotonic() - began:.1f} s later")
    assert users.count("SELECT count(*) FROM ledger WHERE job_id = ANY (%s)", jobs) == 0
    cancelled = "SELECT count(*) FROM pipeline.jobs WHERE id = ANY (%s) AND status = 'cancelled'"
    assert users.count(cancelled, jobs) == MANY
