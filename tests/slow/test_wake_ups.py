"""A relay that falls asleep while others commit misses nothing for longer than a moment."""

from __future__ import annotations

import random
import threading
import time

import psycopg
import pytest

from tests.place import Place

CLIENTS, JOBS = 8, 100_000
# From the commit to the mark of the gate. A submit is found by the next look at the latest; the rest is this machine.
SAID, ALLOWED = 0.05, 2.0
DELAYS = """SELECT max(extract(epoch FROM r.sent_at - w.committed)) AS worst,
        percentile_cont(0.999) WITHIN GROUP (ORDER BY extract(epoch FROM r.sent_at - w.committed)) AS p999, count(*) AS n
    FROM wakes w JOIN pipeline.attempts r ON r.job_id = w.job AND r.fence = 1"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_submit_waits_for_the_backstop(users: Place) -> None:
    """Clients submit at random, alone and at once, so that the relay falls asleep thousands of times in between."""
    users.db.execute("CREATE TABLE wakes (job uuid PRIMARY KEY, committed timestamptz)")
    users.worker(threads=8, processes=2)
    clients = [threading.Thread(target=_submit, args=(users.database_url, n)) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    users.until(lambda: users.count("SELECT count(*) FROM pipeline.outbox") == 0, 600, "all jobs to end")
    [row] = users.rows(DELAYS)
    print(f"\n{row['n']} submits: worst {row['worst']:.3f} s, 99.9 % within {row['p999']:.3f} s (said: {SAID} s)")
    assert row["n"] == JOBS and row["worst"] < ALLOWED


def _submit(url: str, seed: int) -> None:
    """The pause before a commit is where a wake-up could be lost."""
    chance = random.Random(seed)
    with psycopg.connect(url) as connection:
        for _ in range(JOBS // CLIENTS):
            # Slowly enough for the workers to keep up: a full queue is another wait.
            time.sleep(chance.random() * 0.06)
            found = connection.execute("SELECT pipeline.submit('plain')").fetchone()
            assert found is not None
            connection.execute("INSERT INTO wakes VALUES (%s, clock_timestamp())", found)
            if chance.random() < 0.1:
                time.sleep(chance.random() * 0.01)
            connection.execute("UPDATE wakes SET committed = clock_timestamp() WHERE job = %s", found)
            connection.commit()
