"""One customer's backlog of a hundred thousand jobs, and a hundred jobs of ten others that come later."""

from __future__ import annotations

import pytest

from tests.place import Place

MANY = """SELECT count(*) FROM pipeline.submit_many('fair', ARRAY(SELECT jsonb_build_object('customer', %s::text)
          FROM generate_series(1, %s)))"""
BETWEEN = """WITH late AS (SELECT min(created_at) AS began, max(completed_at) AS ended FROM pipeline.jobs
        WHERE body->>'customer' <> 'large')
    SELECT count(*) FROM pipeline.jobs j CROSS JOIN late l WHERE j.body->>'customer' = 'large'
        AND j.completed_at BETWEEN l.began AND l.ended"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_jobs_of_ten_keys_are_done_before_three_hundred_of_the_large_one(users: Place) -> None:
    users.load("tests.key_workflows")
    for _ in range(10):
        users.db.execute(MANY, ("large", 10_000))
    for _ in range(2):
        users.worker(threads=8)
    done = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NOT NULL AND body->>'customer' {} 'large'"
    users.until(lambda: users.count(done.format("=")) > 500, 120, "the backlog to be under way")
    for number in range(10):
        users.db.execute(MANY, (f"late-{number}", 10))
    users.until(lambda: users.count(done.format("<>")) == 100, 120, "the late ones to end")
    before = users.count(BETWEEN)
    print(
        f"\n100 jobs of ten keys beside 100,000 of one: {before} of the large one ended from their submission to their end"
    )
    assert before < 300
