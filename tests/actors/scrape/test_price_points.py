"""What is kept of a source's answer, and what it is worth: phases and writes on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from actors.scrape.config import ScrapeSettings
from actors.scrape.listing import Intake, Listing, PricePoint
from actors.scrape.money import REFERENCE_DAY, REFERENCE_RATES
from actors.scrape.normalise import Market, sort_out
from actors.scrape.price_collection import price_collection
from actors.scrape.sources import list_sources, pause_source, resume_source
from actors.scrape.store import save_points, save_value
from actors.scrape.task import Source, Task, load_task
from actors.scrape.valuation import valuation
from pipeline.declare.errors import BadInput, Permanent, Snooze
from pipeline.declare.job import NOBODY, Job
from pipeline.store import database
from tests.actors.scrape.stall import Stall
from tests.place import ROOT

SEEN = datetime(2026, 5, 1, tzinfo=UTC)
POINT = PricePoint("ext_1", "1", "cent", "https://m.example/1", 500, 500, "USD", "sold", SEEN, 0.5)
COLUMNS = "dedupe_key, title, price_cents, match_strength"


def task(intake: str) -> Task:
    return Task(Intake(intake, "cent"), Source("coins", "coins", "items-api", "http://unused"), {}, SEEN)


def save(intake: str, points: list[PricePoint]) -> None:
    with database.engine().begin() as connection:
        save_points(NOBODY, task(intake), points)(connection)


def save_all(intake: str, answers: list[list[PricePoint]]) -> None:
    for answer in answers:
        save(intake, answer)


def kept(stall: Stall, intake: str) -> list[tuple[object, ...]]:
    rows = stall.place.rows(f"SELECT {COLUMNS} FROM price_points WHERE intake_id = %s ORDER BY dedupe_key", intake)
    return [tuple(row.values()) for row in rows]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1000)), min_size=1, max_size=40, unique_by=lambda p: p[1]),
    st.randoms(),
)
def test_two_workers_upserting_in_any_order_end_with_the_same_rows(
    quiet: Stall, drawn: list[tuple[int, int]], chance: random.Random
) -> None:
    """Points of distinct strengths, in two hands, in any order, at the same time: the strongest of each key stays."""
    if not quiet.place.count("SELECT count(*) FROM sources"):
        quiet.source("coins")
    points = [
        replace(
            POINT,
            dedupe_key=f"ext_{key}",
            match_strength=strength / 1000,
            title=f"t{strength}",
            price_cents=strength + 1,
        )
        for key, strength in drawn
    ]
    outcomes = []
    for _ in range(2):
        chance.shuffle(points)
        half = chance.randint(0, len(points))
        intake = quiet.intake()
        answers = [[point] for point in points]  # each an answer of its own, so that workers really compete
        with ThreadPoolExecutor(2) as pool:
            hands = (answers[:half], answers[half:])
            list(pool.map(save_all, [intake] * 2, hands))
        outcomes.append(kept(quiet, intake))
    assert outcomes[0] == outcomes[1]
    assert [row[3] for row in outcomes[0]] == [
        max(p.match_strength for p in points if p.dedupe_key == row[0]) for row in outcomes[0]
    ]


def test_a_tie_keeps_the_row_and_a_stronger_match_replaces_it(quiet: Stall) -> None:
    """Whatever else the answers say."""
    quiet.source("coins")
    intake = quiet.intake()
    for strength, title in ((0.5, "first"), (0.5, "tie"), (0.4, "weaker")):
        save(intake, [replace(POINT, match_strength=strength, title=title)])
        assert kept(quiet, intake) == [("ext_1", "first", 500, 0.5)]
    save(intake, [replace(POINT, match_strength=0.6, title="stronger", price_cents=700)])
    assert kept(quiet, intake) == [("ext_1", "stronger", 700, 0.6)]


def test_what_cannot_be_priced_is_kept_aside_once_with_its_reason(quiet: Stall) -> None:
    """However often the source says so; and the points keep what they pay for and the day of their rate."""
    quiet.source("coins")
    intake = quiet.intake()
    texts = ("120 kr", "US $10 to US $25", "Lot of 3: £45.00", "about US $40")
    offers = [Listing(f"cent {n}", f"https://m.example/{n}", told, type="sold") for n, told in enumerate(texts)]
    points, aside = sort_out([*offers, offers[0]], Intake(intake, "cent"), Market(REFERENCE_RATES), SEEN)
    for _ in range(2):
        with database.engine().begin() as connection:
            save_points(NOBODY, task(intake), points, aside)(connection)
    reasons = quiet.place.rows("SELECT price_text, reason FROM unread_prices ORDER BY url")
    assert [tuple(row.values()) for row in reasons] == [
        ("120 kr", "unknown currency"),
        ("US $10 to US $25", "range"),
    ]
    rows = quiet.place.rows("SELECT price_cents, quantity, approximate, rate_day FROM price_points ORDER BY url")
    assert [tuple(row.values()) for row in rows] == [(1905, 3, False, REFERENCE_DAY), (4000, 1, True, None)]


def test_a_sources_own_currency_says_what_its_sign_means(quiet: Stall) -> None:
    """It reaches the phase; rates without a day reach nothing."""
    quiet.source("coins")
    quiet.place.db.execute("UPDATE sources SET currency = 'CAD'")
    assert load_task(quiet.job(NOBODY, quiet.intake(), "coins")).source.currency == "CAD"
    result = price_collection(quiet.job(NOBODY, quiet.intake(), "coins")).result
    assert result is not None and result["unread"] == {}
    with pytest.raises(ValueError, match="SCRAPE_RATES_DAY"):
        ScrapeSettings(rates={"USD": 1.0})


def test_two_workers_with_the_same_listings_never_deadlock(quiet: Stall) -> None:
    """Both write fifty keys, twenty times, at once."""
    quiet.source("coins")
    intake = quiet.intake()
    points = [replace(POINT, dedupe_key=f"ext_{n}") for n in range(50)]

    def worker(seed: int) -> None:
        chance = random.Random(seed)
        for step in range(20):
            mixed = [replace(point, match_strength=step / 20) for point in points]
            chance.shuffle(mixed)
            save(intake, mixed)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(worker, (1, 2)))
    assert len(kept(quiet, intake)) == 50


def test_a_valuation_is_one_row_however_often_it_is_computed(quiet: Stall) -> None:
    """Recomputing without news changes nothing but the time; news change the value."""
    quiet.source("coins")
    intake = quiet.intake()
    save(intake, [replace(POINT, dedupe_key=f"ext_{n}", price_cents=100 + n) for n in range(5)])
    columns = "SELECT id, low_cents, mid_cents, high_cents, confidence, points_used, points_by_type FROM valuations"
    found = []
    for extra in ([], [], [replace(POINT, dedupe_key="ext_9", price_cents=109)]):
        save(intake, extra)
        done = valuation(quiet.job(NOBODY, intake, "coins"))
        assert done.write is not None
        with database.engine().begin() as connection:
            done.execute(connection)
        found.append(quiet.place.rows(columns))
    assert found[0] == found[1] and [len(rows) for rows in found] == [1, 1, 1]
    assert found[0][0]["mid_cents"] == 102 and found[2][0]["points_by_type"] == {"sold": 6}


def test_an_intake_without_prices_has_a_valuation_that_says_so(quiet: Stall) -> None:
    """All its jobs may have failed; the row is there, with no value and no confidence."""
    intake = quiet.intake()
    with database.engine().begin() as connection:
        save_value(intake)(connection)
    [row] = quiet.place.rows("SELECT * FROM valuations")
    assert (row["mid_cents"], row["confidence"], row["points_used"]) == (None, 0.0, 0)


def test_later_jobs_join_the_open_batch_and_a_finished_one_is_followed_by_a_new_one(quiet: Stall) -> None:
    """One valuation for all jobs of the intake that were open together, and none before the last is final."""
    quiet.source("coins")
    intake, valuations = quiet.intake(), "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'valuation'"
    first = [*quiet.collect(intake, ["coins", "coins"]), *quiet.collect(intake, ["coins"])]
    for job in first:
        assert quiet.place.count(valuations) == 0
        quiet.place.db.execute("SELECT pipeline.cancel(%s)", (job,))
    assert quiet.place.count(valuations) == 1
    [later] = quiet.collect(intake, ["coins"])
    assert quiet.place.count("SELECT count(DISTINCT batch_id) FROM scrape_jobs") == 2
    quiet.place.db.execute("SELECT pipeline.cancel(%s)", (later,))
    assert quiet.place.count(valuations) == 2


def test_a_job_that_nobody_waits_for_asks_for_a_valuation_itself(quiet: Stall) -> None:
    """Submitted alone, or revived after its batch was complete."""
    quiet.source("coins")
    intake = quiet.intake()
    alone = quiet.place.row("SELECT pipeline.submit('scrape', '{}') AS id")
    [inside] = quiet.collect(intake, ["coins"])
    assert alone is not None
    for job, valuations in ((inside, 0), (alone["id"], 1)):
        with database.engine().begin() as connection:
            save_points(job, task(intake), [POINT])(connection)
        assert quiet.place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'valuation'") == valuations


def test_the_cache_spares_the_source_unless_the_job_asks_for_something_else(
    quiet: Stall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed's key knows the coin and the source, not a job's own parameters."""
    monkeypatch.setenv("CACHE_ENABLED", "true")
    quiet.source("coins")
    intake = quiet.intake()
    jobs = [quiet.job(NOBODY, intake, "coins", **params) for params in ({}, {}, {"sold": "1"})]
    results = [asyncio.run(price_collection(job)).result for job in jobs]
    assert [result and result["cached"] for result in results] == [False, True, False]
    assert quiet.calls("coins") == 2 and len({result["points"] for result in results if result}) == 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "intake_id"),
        ({"intake_id": "x", "source_id": "coins"}, "no coin intake"),
        ({"source_id": "y"}, "no source"),
    ],
)
def test_a_job_about_nothing_fails_at_once(quiet: Stall, body: dict[str, str], says: str) -> None:
    """With what is missing."""
    quiet.source("coins")
    job = quiet.job(NOBODY, quiet.intake(), "coins")
    with pytest.raises(Permanent, match=says):
        asyncio.run(price_collection(Job(body=body and {**job.body, **body}, services=job.services)))


def test_a_disabled_source_is_not_asked(quiet: Stall) -> None:
    """The job fails with the way out."""
    quiet.source("coins", enabled=False)
    with pytest.raises(Permanent, match="source coins is disabled: enable it"):
        asyncio.run(price_collection(quiet.job(NOBODY, quiet.intake(), "coins")))
    assert quiet.calls("coins") == 0


def test_an_operator_pauses_and_resumes_a_source(quiet: Stall) -> None:
    """By name; its jobs wait at the gate meanwhile, and the breaker's pause is ended too."""
    quiet.source("coins")
    job = quiet.job(NOBODY, quiet.intake(), "coins")
    with database.engine().begin() as connection:
        connection.execute(text("select source_open('coins', null, 300)"))
        assert pause_source(connection, "coins", 60)["state"] == "paused"
    with pytest.raises(Snooze, match="paused \\(operator\\)") as wait:
        asyncio.run(price_collection(job))
    assert 50 < wait.value.seconds <= 60 and wait.value.reason == "operator"
    with database.engine().begin() as connection:
        assert pause_source(connection, "coins")["pause_reason"] == "operator"
        assert resume_source(connection, "coins")["state"] == "closed"
        assert [row["waiting"] for row in list_sources(connection)] == [0]
    assert asyncio.run(price_collection(job)).result is not None
    with database.engine().begin() as connection, pytest.raises(BadInput, match="known sources: coins"):
        pause_source(connection, "nowhere")


def test_a_sources_rate_limit_has_its_rate(quiet: Stall) -> None:
    """From its first day and after every change."""
    quiet.source("coins", rate_limit_per_minute=30)
    rate = "SELECT rate FROM pipeline.rate_limits WHERE name = 'source:coins'"
    assert quiet.place.rows(rate) == [{"rate": 0.5}]
    quiet.place.db.execute("UPDATE sources SET rate_limit_per_minute = 120")
    assert quiet.place.rows(rate) == [{"rate": 2.0}]


def test_the_views_and_functions_can_be_replaced_on_a_living_database(quiet: Stall) -> None:
    """``pipeline migrate`` applies the file again after every change; what waits there stays."""
    quiet.source("coins")
    quiet.collect(quiet.intake(), ["coins"])
    quiet.place.db.execute((ROOT / "actors/scrape/views.sql").read_bytes())
    assert [row["status"] for row in quiet.place.rows("SELECT status FROM scrape_jobs")] == ["pending"]
