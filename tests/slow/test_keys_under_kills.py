"""Fifty keys, four processes, random kills, with the settings that users have: the limits and the order of each key hold."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter

import pytest
from psycopg.types.json import Jsonb

from tests.flow.test_keys import AT_ONCE
from tests.place import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
KEYS, EACH, WORKERS, KILLS = 50, 20, 4, 8
LEFT = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"
ORDER = """SELECT body->>'customer' AS key, (body->>'number')::int AS number FROM pipeline.jobs j
    WHERE workflow = 'ordered' ORDER BY (SELECT min(started_at) FROM pipeline.attempts a WHERE a.job_id = j.id)"""
# How far the keys were when the first of them was through: how many of its jobs the slowest had begun.
SLOWEST = """WITH begun AS (
        SELECT j.body->>'customer' AS key, min(a.started_at) AS at FROM pipeline.jobs j JOIN pipeline.attempts a ON a.job_id = j.id
        WHERE j.workflow = 'shared' GROUP BY j.id, 1
    ), through AS (SELECT min(last) AS at FROM (SELECT max(b.at) AS last FROM begun b GROUP BY b.key) k)
    SELECT min(n) FROM (SELECT count(*) FILTER (WHERE b.at <= t.at) AS n FROM begun b CROSS JOIN through t GROUP BY b.key) s"""


def test_never_more_than_two_of_a_key_at_once_none_starves_and_each_keeps_its_order(users: Place) -> None:
    users.load("tests.key_workflows")
    for _ in range(WORKERS):
        users.worker(threads=8)
    bodies = [{"customer": f"c-{n % KEYS:02}", "number": n, "seconds": 0.05} for n in range(KEYS * EACH)]
    for workflow in ("shared", "ordered"):
        users.db.execute("SELECT pipeline.submit_many(%s, %s::jsonb[])", (workflow, [Jsonb(body) for body in bodies]))
    dice = random.Random(24)
    for number in range(1, KILLS + 1):
        share = 2 * len(bodies) * (1 - number / (KILLS + 1))
        users.until(lambda share=share: users.count(LEFT) <= share, 180, "the next kill")  # type: ignore[misc]
        os.kill(dice.choice(users.until(users.booted, 60, "a worker that has booted")), signal.SIGKILL)
        users.worker(threads=8)
    users.until(lambda: users.count(LEFT) == 0, 300, "every job to end")
    assert users.count("SELECT count(*) FROM pipeline.jobs WHERE status <> 'succeeded'") == 0
    most = {workflow: users.count(AT_ONCE, workflow) for workflow in ("shared", "ordered")}
    slowest = users.count(SLOWEST)
    crashed = users.count("SELECT count(*) FROM pipeline.attempts WHERE outcome = 'crashed'")
    print(
        f"\n{KEYS} keys, {KILLS} kills, {crashed} crashed attempts: at once {most}; "
        f"the slowest key had begun {slowest} of {EACH} when the first was through"
    )
    assert most["shared"] <= 2 and most["ordered"] <= 1 and slowest >= EACH / 2
    begun: dict[str, list[int]] = {}
    for row in users.rows(ORDER):
        begun.setdefault(row["key"], []).append(row["number"])
    assert all(numbers == sorted(numbers) for numbers in begun.values())
    assert Counter(map(len, begun.values())) == {EACH: KEYS}
