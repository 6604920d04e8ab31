"""Keys on real workers: turns, limits and order hold while processes are killed."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter

from psycopg.types.json import Jsonb

from pipeline import submit
from tests.place import Place

KEYS = 12
# Every attempt of a key, with the ends of those that a kill cut off.
SPANS = """SELECT j.body->>'customer' AS key, a.started_at, a.finished_at, j.id FROM pipeline.attempts a JOIN pipeline.jobs j ON j.id = a.job_id
    WHERE j.workflow = %s AND a.started_at IS NOT NULL ORDER BY a.started_at"""
# What runs of one key at the moment in which an attempt begins.
AT_ONCE = f"""WITH s AS ({SPANS}) SELECT max(n) AS most FROM (
    SELECT count(*) AS n FROM s a JOIN s b ON b.key = a.key AND b.started_at <= a.started_at AND b.finished_at > a.started_at
    GROUP BY a.key, a.started_at, a.id) c"""


def test_limits_and_order_of_keys_hold_while_workers_are_killed(place: Place) -> None:
    """Never more of a key than it may have, in its order where that was asked for, and every job ends."""
    place.load("tests.key_workflows")
    for _ in range(2):
        place.worker(threads=4)
    bodies = [{"customer": f"c-{n % KEYS:02}", "number": n, "seconds": 0.02} for n in range(KEYS * 8)]
    for workflow in ("shared", "ordered"):
        place.db.execute("SELECT pipeline.submit_many(%s, %s::jsonb[])", (workflow, [Jsonb(body) for body in bodies]))
    dice = random.Random(7)
    left = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"
    for share in (0.75, 0.5, 0.25):
        place.until(lambda share=share: place.count(left) <= 2 * len(bodies) * share, 60, "the next kill")  # type: ignore[misc]
        os.kill(dice.choice(place.until(place.booted, 20, "a worker that has booted")), signal.SIGKILL)
        place.worker(threads=4)
    place.until(lambda: place.count(left) == 0, 120, "every job to end")
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status <> 'succeeded'") == 0
    for workflow, most in (("shared", 2), ("ordered", 1)):
        assert place.count(AT_ONCE, workflow) <= most
    begun: dict[str, list[int]] = {}
    order = """SELECT body->>'customer' AS key, (body->>'number')::int AS number FROM pipeline.jobs j
        WHERE workflow = 'ordered' ORDER BY (SELECT min(started_at) FROM pipeline.attempts a WHERE a.job_id = j.id)"""
    for row in place.db.execute(order).fetchall():
        begun.setdefault(row["key"], []).append(row["number"])
    assert all(numbers == sorted(numbers) for numbers in begun.values()) and len(begun) == KEYS
    assert Counter(len(numbers) for numbers in begun.values()) == {8: KEYS}


def test_one_customers_backlog_delays_another_ones_job_by_a_turn(place: Place) -> None:
    place.load("tests.key_workflows")
    place.worker(threads=4)
    place.db.execute(
        """SELECT pipeline.submit_many('fair', ARRAY(SELECT jsonb_build_object('customer', 'large', 'seconds', 0.01)
           FROM generate_series(1, 2000)))"""
    )
    done = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NOT NULL"
    place.until(lambda: place.count(done) >= 50, 60, "the backlog to be under way")
    before = place.count(done)
    place.finished(submit(None, "fair", {"customer": "small"}))
    assert place.count(done) - before < 200
