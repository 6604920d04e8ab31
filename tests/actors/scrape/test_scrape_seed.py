"""The seed's own statements, as written, and its two tests with real worker processes."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

from tests.actors.scrape.stall import Stall

CREATE_20 = """
INSERT INTO scrape_jobs (intake_id, source_id, query_params, status)
SELECT
  (SELECT id FROM coin_intakes LIMIT 1),
  (SELECT id FROM sources WHERE enabled = true LIMIT 1),
  '{}'::jsonb,
  'pending'
FROM generate_series(1, 20);
"""
ONCE = """
SELECT
  status,
  locked_by,
  COUNT(*) as count
FROM scrape_jobs
WHERE status IN ('succeeded', 'failed', 'running')
GROUP BY status, locked_by;
"""
DUPLICATES = """
SELECT
  intake_id,
  source_id,
  dedupe_key,
  COUNT(*) as count
FROM price_points
GROUP BY intake_id, source_id, dedupe_key
HAVING COUNT(*) > 1;
"""
STUCK = """
SELECT
  id,
  status,
  locked_by,
  heartbeat_at,
  NOW() - heartbeat_at as time_since_heartbeat
FROM scrape_jobs
WHERE status = 'running'
AND heartbeat_at < NOW() - INTERVAL '5 minutes';
"""
RECENT = """
SELECT
  id,
  status,
  locked_by,
  heartbeat_at,
  created_at,
  completed_at,
  error_message
FROM scrape_jobs
ORDER BY created_at DESC
LIMIT 20;
"""
HEALTH = """
SELECT
  name,
  enabled,
  failure_streak,
  last_success_at,
  last_failure_at,
  paused_until
FROM sources
ORDER BY name;
"""
NO_HEARTBEAT = """
SELECT
  id,
  status,
  locked_by,
  heartbeat_at,
  NOW() - heartbeat_at as time_since_heartbeat
FROM scrape_jobs
WHERE status = 'running'
AND (heartbeat_at IS NULL OR heartbeat_at < NOW() - INTERVAL '5 minutes');
"""
DONE = "SELECT count(*) FROM scrape_jobs WHERE status = 'succeeded'"


def test_two_workers_share_twenty_jobs_and_do_each_once(stall: Stall) -> None:
    """The seed's concurrency test: every job ran exactly once, no price is there twice, and one valuation followed."""
    place = stall.place
    intake = stall.intake()
    stall.source("coins", "listing-page")
    stall.sandbox.add_fault(match="/market/coins", delay=0.1)
    for worker in ("worker-1", "worker-2"):
        place.worker(threads=4, WORKER_ID=worker)
    place.db.execute(CREATE_20)
    place.until(lambda: place.count(DONE) == 20, 60, "twenty jobs")
    done = place.rows(ONCE)
    assert {row["status"] for row in done} == {"succeeded"} and sum(row["count"] for row in done) == 20
    assert {row["locked_by"].split("-", 2)[1] for row in done} == {"1", "2"}
    assert place.count("SELECT count(*) FROM pipeline.attempts WHERE phase = 'price-collection'") == 20
    assert stall.calls("coins") == 20
    assert place.rows(DUPLICATES) == [] and place.count("SELECT count(*) FROM price_points") == 12
    place.until(
        lambda: (
            place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'valuation' AND status = 'succeeded'") == 1
        )
    )
    [value] = place.rows("SELECT * FROM valuations")
    assert value["intake_id"] == intake and value["low_cents"] <= value["mid_cents"] <= value["high_cents"]
    for statement in (STUCK, NO_HEARTBEAT):
        assert place.rows(statement) == []
    assert len(place.rows(RECENT)) == 20 and place.rows(HEALTH)[0]["failure_streak"] == 0


def test_a_dead_workers_job_is_taken_over(stall: Stall) -> None:
    """The seed's dead-worker test, without its five minutes: the lock of a killed process is free at once."""
    place = stall.place
    stall.intake()
    stall.source("coins")
    stall.sandbox.add_fault(match="/market/coins", delay=30, times=1)
    first = place.worker(threads=1, WORKER_ID="worker-1")
    place.db.execute(CREATE_20.replace("20", "1"))
    place.until(lambda: stall.calls("coins") == 1, 20, "the first call")
    os.killpg(first.pid, signal.SIGKILL)
    place.worker(threads=1, WORKER_ID="worker-2")
    place.until(lambda: place.count(DONE) == 1, 30, "the job to be taken over")
    [row] = place.rows("SELECT locked_by, attempts, retry_count FROM scrape_jobs")
    assert row["locked_by"].startswith("worker-2") and (row["attempts"], row["retry_count"]) == (1, 0)
    assert place.rows(DUPLICATES) == []


def test_a_claim_by_hand_is_refused_and_a_cancel_by_hand_is_one(stall: Stall) -> None:
    """The view takes what has a meaning and says no to the rest, with a hint."""
    place = stall.place
    stall.intake()
    stall.source("coins")
    place.db.execute(CREATE_20.replace("20", "2"))
    with pytest.raises(psycopg.errors.Error, match="only a worker's claim") as refused:
        place.db.execute("UPDATE scrape_jobs SET status = 'running', locked_by = 'me'")
    assert refused.value.sqlstate == "PL023" and "start a worker" in (refused.value.diag.message_hint or "")
    with pytest.raises(psycopg.errors.Error, match="a new job is pending, not running"):
        place.db.execute(
            "INSERT INTO scrape_jobs (intake_id, source_id, status) SELECT intake_id, source_id, 'running' FROM scrape_jobs LIMIT 1"
        )
    place.db.execute("UPDATE scrape_jobs SET status = 'cancelled'")
    assert {row["status"] for row in place.rows("SELECT status FROM pipeline.jobs WHERE workflow = 'scrape'")} == {
        "cancelled"
    }
    with pytest.raises(psycopg.errors.Error, match="only a worker's claim"):
        place.db.execute("UPDATE scrape_jobs SET status = 'succeeded'")


@pytest.mark.parametrize(("intake", "source", "code"), [("nobody", "coins", "PL020"), (None, "nowhere", "PL021")])
def test_a_job_for_nothing_is_refused(stall: Stall, intake: str | None, source: str, code: str) -> None:
    """The statement fails, and with it whatever else the caller's transaction did."""
    stall.source("coins")
    with pytest.raises(psycopg.errors.Error) as refused:
        stall.place.db.execute(
            "INSERT INTO scrape_jobs (intake_id, source_id) VALUES (%s, %s)", (intake or stall.intake(), source)
        )
    assert refused.value.sqlstate == code and stall.place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_a_running_job_is_reset_by_hand(stall: Stall) -> None:
    """running → pending takes it from its worker at no cost."""
    place = stall.place
    stall.intake()
    stall.source("coins")
    stall.sandbox.add_fault(match="/market/coins", delay=3, times=1)
    place.worker(threads=2)
    place.db.execute(CREATE_20.replace("20", "1"))
    place.until(lambda: stall.calls("coins") == 1, 20, "the first call")
    place.db.execute("UPDATE scrape_jobs SET status = 'pending' WHERE status = 'running'")
    place.until(lambda: place.count(DONE) == 1, 20, "the second try")
    assert stall.calls("coins") == 2 and place.rows(DUPLICATES) == []
