"""Sources that die for a while, with real workers: the others keep working, and nobody pays for the outage."""

from __future__ import annotations

import httpx

from tests.actors.scrape.stall import Stall

SICK, WELL = ("sick-1", "sick-2"), ("well-1", "well-2", "well-3")
OPEN = """SELECT probes FROM sources s WHERE id = %s AND paused_until > now() + interval '0.3 seconds'
    AND NOT EXISTS (SELECT 1 FROM pipeline.jobs j WHERE j.status = 'running' AND j.body ->> 'source_id' = s.id)"""


def at_rest(stall: Stall, source: str) -> tuple[int, int] | None:
    """Calls to the source and its probes so far, if its breaker is open and no call is on its way."""
    before, calls = stall.place.row(OPEN, source), stall.calls(source)
    return (calls, before["probes"]) if before is not None and stall.place.row(OPEN, source) == before else None


def calls_and_probes(stall: Stall, source: str) -> tuple[int, int]:
    """How many calls were made, and how many probes, from one rest of the open breaker to another two probes later."""
    calls, probes = stall.place.until(lambda: at_rest(stall, source), 60, "an open breaker at rest")
    enough = "SELECT probes >= %s FROM sources WHERE id = %s"
    stall.place.until(lambda: stall.place.count(enough, probes + 2, source), 60, "two more probes")
    later_calls, later_probes = stall.place.until(lambda: at_rest(stall, source), 60, "rest after them")
    return later_calls - calls, later_probes - probes


def test_two_of_five_sources_die_for_a_while(stall: Stall) -> None:
    """Healthy jobs all end during the outage; a sick source is called by its probes only; in the end all hundred
    succeed without an error counted, each intake has its one valuation, and no price is there twice."""
    place = stall.place
    for name in (*SICK, *WELL):
        stall.source(name, "listing-page" if name.endswith("1") else "items-api")
    stall.sandbox.add_fault(match="/market/sick-1", status=500)
    stall.sandbox.add_fault(match="/market/sick-2", cut=True)
    for worker in ("worker-1", "worker-2"):
        place.worker(threads=8, WORKER_ID=worker, SCRAPE_BREAKER_SECONDS="3", SCRAPE_PROBE_SECONDS="5")
    intakes = [stall.intake(f"coin {n}") for n in range(20)]
    jobs = [job for intake in intakes for job in stall.collect(intake, [*SICK, *WELL])]
    healthy = "SELECT count(*) FROM scrape_jobs WHERE status = 'succeeded' AND source_id LIKE 'well%%'"
    place.until(lambda: place.count(healthy) == 60, 60, "the healthy jobs")
    for source in SICK:
        calls, probes = calls_and_probes(stall, source)
        assert calls == probes >= 2
    assert place.count("SELECT count(*) FROM valuations") == 0
    httpx.delete(f"{stall.sandbox.url}/_faults").raise_for_status()
    rows = place.finished(*jobs, timeout=60)
    assert {row["status"] for row in rows} == {"succeeded"}
    paid = [row["id"] for row in rows if row["attempts"] or row["crashes"]]
    assert paid == [], [place.attempts(job) for job in paid]
    place.until(lambda: place.count("SELECT count(*) FROM valuations") == 20, 20, "the valuations")
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'valuation'") == 20
    assert place.count("SELECT count(*) FROM price_points") == 100 * 12
    assert place.count("SELECT count(*) FROM source_failures") == 0
    assert {row["failure_streak"] for row in place.rows("SELECT failure_streak FROM sources")} == {0}
