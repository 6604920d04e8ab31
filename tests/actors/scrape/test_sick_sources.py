"""Sources that die for a while, with real workers: the others go on, and nobody pays for the outage."""

from __future__ import annotations

import httpx

from tests.actors.scrape.stall import Stall

SICK, WELL = ("sick-1", "sick-2"), ("well-1", "well-2", "well-3")
SETTLED = """SELECT count(*) FROM sources s WHERE id = ANY (%s) AND paused_until > now() + interval '0.3 seconds'
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.status = 'running' AND j.body ->> 'source_id' = s.id)"""


def at_rest(stall: Stall) -> tuple[list[int], list[int]] | None:
    """Calls to and probes of the sick sources, if their breakers are open and no call is on its way."""

    def look() -> list[int] | None:
        rows = stall.place.rows("SELECT probes FROM sources WHERE id = ANY (%s) ORDER BY id", list(SICK))
        return [row["probes"] for row in rows] if stall.place.count(SETTLED, list(SICK)) == 2 else None

    before, calls = look(), [stall.calls(name) for name in SICK]
    return (calls, before) if before is not None and look() == before else None


def settled(stall: Stall) -> tuple[list[int], list[int]]:
    found: tuple[list[int], list[int]] = stall.place.until(lambda: at_rest(stall), 30, "open breakers at rest")
    return found


def test_two_of_five_sources_die_for_a_while(stall: Stall) -> None:
    """Healthy jobs all end during the outage; a sick source is called by its probes only; in the end all hundred
    succeed without an error counted, each intake has its one valuation, and no price is there twice."""
    place = stall.place
    for name in (*SICK, *WELL):
        stall.source(name, "listing-page" if name.endswith("1") else "items-api")
    stall.sandbox.add_fault(match="/market/sick-1", status=500)
    stall.sandbox.add_fault(match="/market/sick-2", cut=True)
    for worker in ("worker-1", "worker-2"):
        place.worker(threads=8, WORKER_ID=worker, SCRAPE_BREAKER_SECONDS="1.2", SCRAPE_PROBE_SECONDS="5")
    intakes = [stall.intake(f"coin {n}") for n in range(20)]
    jobs = [job for intake in intakes for job in stall.collect(intake, [*SICK, *WELL])]
    healthy = "SELECT count(*) FROM scrape_jobs WHERE status = 'succeeded' AND source_id LIKE 'well%%'"
    place.until(lambda: place.count(healthy) == 60, 60, "the healthy jobs")
    calls, probes = settled(stall)
    place.until(
        lambda: place.count("SELECT min(probes) FROM sources WHERE id = ANY (%s)", list(SICK)) >= max(probes) + 2, 30
    )
    later_calls, later_probes = settled(stall)
    made = [after - before for before, after in zip(calls, later_calls, strict=True)]
    probed = [after - before for before, after in zip(probes, later_probes, strict=True)]
    assert made == probed and min(probed) >= 2
    assert place.count("SELECT count(*) FROM valuations") == 0
    httpx.delete(f"{stall.sandbox.url}/_faults").raise_for_status()
    rows = place.finished(*jobs, timeout=60)
    assert {row["status"] for row in rows} == {"succeeded"}
    paid = [row["id"] for row in rows if row["attempts"] or row["crashes"]]
    assert paid == [], [place.attempts(job) for job in paid]
    place.until(lambda: place.count("SELECT count(*) FROM valuations") == 20, 20, "the valuations")
    assert place.count("SELECT count(*) FROM jobs WHERE workflow = 'valuation'") == 20
    assert place.count("SELECT count(*) FROM price_points") == 100 * 12
    assert place.count("SELECT count(*) FROM source_failures") == 0
    assert {row["failure_streak"] for row in place.rows("SELECT failure_streak FROM sources")} == {0}
