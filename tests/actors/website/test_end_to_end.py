"""The website workflow through real workers, real servers and real HTTP to the sandbox."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline import submit, submit_many
from sandbox import Sandbox
from tests.place import Place

FAULTS: dict[int, dict[str, object]] = {
    0: {"status": 500, "times": 2},
    1: {"status": 429, "retry_after": "1", "times": 1},
    2: {"delay": 0.5},
    3: {"cut": True, "times": 1},
    4: {"garbage": True},
}


@pytest.fixture
def environment(sandbox: Sandbox) -> dict[str, str]:
    return {
        "PIPELINE_SANDBOX_URL": sandbox.url,
        "PIPELINE_BACKOFF_SCALE": "0.05",
        "PIPELINE_WEBSITE_RESPECT_ROBOTS": "false",
    }


def kind(n: int) -> int | None:
    """Every fifth site is at fault, in turn in each of five ways."""
    return (n // 5) % 5 if n % 5 == 0 else None


def test_a_hundred_sites_with_a_fifth_at_fault_end_as_expected(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """None lost; passing faults cost retries or nothing; the hopeless fail with a sentence; the answers are stored."""
    for n in range(1, 101):
        if (fault := kind(n)) is not None:
            sandbox.add_fault(match=f"/sites/{n}/", **FAULTS[fault])
    place.worker(threads=12, processes=2, settings=environment)
    jobs = submit_many(None, "website", [{"url": f"{sandbox.url}/sites/{n}/"} for n in range(1, 101)])
    hopeless = submit_many(None, "website", [{"url": f"{sandbox.url}/no-such-page"}, {"url": "http://10.0.0.1/"}, {}])
    rows = dict(zip(range(1, 101), place.finished(*jobs, timeout=120), strict=True))
    first_tries = {
        n: [a["outcome"] for a in place.attempts(jobs[n - 1]) if a["phase"] == "website-analysis"] for n in rows
    }
    for n, row in rows.items():
        expected = "failed" if kind(n) == 4 else "succeeded"
        assert row["status"] == expected, (n, row["error_message"])
    assert {tuple(first_tries[n]) for n in rows if kind(n) == 0} == {("retried", "retried", "succeeded")}
    assert {tuple(first_tries[n]) for n in rows if kind(n) == 1} == {("snoozed", "succeeded")}
    assert {tuple(first_tries[n]) for n in rows if kind(n) == 3} == {("retried", "succeeded")}
    assert {tuple(first_tries[n]) for n in rows if kind(n) in (None, 2)} == {("succeeded",)}
    assert {tuple(first_tries[n]) for n in rows if kind(n) == 4} == {("retried", "retried", "exhausted")}
    assert all("is not readable text" in rows[n]["error_message"] for n in rows if kind(n) == 4)
    for row, says in zip(place.finished(*hopeless), ("404", "private", "url"), strict=True):
        print(row["error_message"])
        assert row["status"] == "failed" and says in row["error_message"]
        assert [a["outcome"] for a in place.attempts(row["id"])] == ["failed"]
    # A site's own faults and a 404 are nobody's mistake here.
    assert "answered 404 Not Found" in place.logs() and "Traceback" not in place.logs()
    stored = place.rows("SELECT * FROM website_analyses WHERE answer IS NOT NULL")
    assert len(stored) == 96 and all(row["page"]["title"] and row["tokens_in"] > 0 for row in stored)
    seen = place.rows('SELECT status, "currentStep", "inProgress", "retryCount", "extractedInfo" FROM analysis_jobs')
    assert len(seen) == 103 and sum(row["status"] == "completed" for row in seen) == 96


def test_one_retry_after_of_the_model_pauses_every_worker(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """A single 429 is enough: nobody asks again before its time, and no attempt is charged."""
    sandbox.add_fault(match="/v1/chat", status=429, retry_after="3", times=1)
    place.worker(threads=8, processes=2, settings=environment)
    jobs = submit_many(None, "website", [{"url": f"{sandbox.url}/sites/{n}/"} for n in range(1, 21)])
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.phases WHERE paused_until > now()"), 30, "the pause")
    row = place.row("SELECT paused_until FROM pipeline.phases WHERE queue = 'website.model-analysis'")
    rows = place.finished(*jobs, timeout=60)
    assert {row["status"] for row in rows} == {"succeeded"} and sum(row["attempts"] for row in rows) == 0
    assert row is not None
    early = place.count(
        "SELECT count(*) FROM pipeline.attempts WHERE phase = 'model-analysis' AND started_at > %s - interval '2 seconds' AND started_at < %s",
        row["paused_until"],
        row["paused_until"],
    )
    assert early == 0


def test_the_seeds_five_cases_are_refused_with_their_reason(
    place: Place, sandbox: Sandbox, environment: dict[str, str]
) -> None:
    """Concurrent sends of one job: already queued, being processed, other phase, lost the race, queue full."""
    from pipeline.actors import prompt_forming, website_analysis

    sandbox.add_fault(match="/sites/1/", delay=4.0)
    job = submit(None, "website", {"url": f"{sandbox.url}/sites/1/"})
    with ThreadPoolExecutor(20) as pool:
        answers = [answer.reason for answer in pool.map(lambda _: website_analysis.send(job), range(20))]
    assert sorted(answers) == ["accepted", *["already_queued"] * 19]  # one winner; nineteen lost the race
    assert prompt_forming.send(job).reason == "other_phase"
    place.worker(threads=2, queues=("plain.alpha",), settings=environment)
    place.db.execute("UPDATE pipeline.phases SET queue_limit = 1 WHERE queue = 'website.website-analysis'")
    place.until(lambda: place.depth("website.website-analysis") == 1, 20, "a full queue")
    waits = submit(None, "website", {"url": f"{sandbox.url}/sites/2/"})
    assert website_analysis.send(job).reason == "already_queued"
    assert website_analysis.send(waits).reason == "queue_full"
    assert place.job(waits)["status"] == "pending"
    place.db.execute("UPDATE pipeline.phases SET queue_limit = 1000")
    place.worker(threads=2, settings=environment)
    place.running(job)
    with ThreadPoolExecutor(20) as pool:
        assert {answer.reason for answer in pool.map(lambda _: website_analysis.send(job), range(20))} == {
            "already_running"
        }
    assert {row["status"] for row in place.finished(job, waits)} == {"succeeded"}


def test_ten_processors_and_never_an_eleventh(place: Place, sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Over two processes with 24 threads, as the view of processors shows them."""
    for n in range(1, 31):
        sandbox.add_fault(match=f"/sites/{n}/", delay=0.5)
    place.worker(threads=12, processes=2, settings=environment)
    jobs = submit_many(None, "website", [{"url": f"{sandbox.url}/sites/{n}/"} for n in range(1, 31)])
    most = 0
    while place.count("SELECT count(*) FROM pipeline.jobs WHERE phase = 'website-analysis' AND completed_at IS NULL"):
        states = {
            r["processor"]: r["state"]
            for r in place.rows("SELECT * FROM pipeline.processors WHERE phase = 'website-analysis'")
        }
        assert set(states) == {f"website-analysis-processor-{n}" for n in range(1, 11)}
        most = max(most, sum(state == "busy" for state in states.values()))
    assert most == 10
    assert {row["status"] for row in place.finished(*jobs)} == {"succeeded"}
