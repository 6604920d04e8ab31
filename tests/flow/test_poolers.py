"""Behind PgBouncer: in session mode everything; in transaction mode everything, with a second address for a few connections."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pipeline import job, settings, submit, submit_many
from pipeline.store.engine import connect, engine
from tests.place import Place
from tests.pooler import Mode, pooled

TIMEOUT = "SELECT current_setting('idle_in_transaction_session_timeout')"
MODES: tuple[Mode, ...] = ("session", "transaction")


@pytest.fixture(params=MODES)
def behind(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This process and its workers reach PostgreSQL through the pooler. What the test itself looks at, it asks directly."""
    with pooled(place.servers.postgres, request.param, place.folder / "pooler") as address:
        addresses = {"DATABASE_URL": address(place.name)}
        if request.param == "transaction":
            addresses["DATABASE_SESSION_URL"] = place.database_url
        for name, value in addresses.items():
            monkeypatch.setenv(name, value)
        place.of_workers.update(addresses)
        settings.get.cache_clear()
        yield request.param
        place.close()


def test_work_goes_on_behind_a_pooler_through_errors_kills_and_lost_sessions(behind: str, place: Place) -> None:
    """Writes are shared, results are waited for, a killed worker's job is taken over: with one crash counted."""
    place.worker(threads=4)
    jobs = submit_many(None, "triple", [{"n": n} for n in range(20)])
    flaky = submit(None, "single", {"do": "flaky"})
    assert job(submit(None, "single", {"do": "sleep", "seconds": 0.1})).result(60)
    rows = place.finished(*jobs, flaky, timeout=60)
    assert {row["status"] for row in rows} == {"succeeded"}
    assert place.count("SELECT count(*) FROM ledger WHERE job_id = ANY (%s)", jobs) == 60
    # More often than the driver waits before it would prepare a statement.
    again = [submit(None, "triple", {"n": n}) for n in range(12)]
    place.finished(*again, timeout=60)

    doomed = submit(None, "single", {"do": "sleep", "seconds": 4})
    place.running(doomed)
    place.worker(threads=4)
    place.kill_holder(doomed)
    [row] = place.finished(doomed, timeout=60)
    assert (row["status"], row["crashes"]) == ("succeeded", 1)

    last = submit_many(None, "triple", [{"n": n, "seconds": 0.2} for n in range(20)])
    place.until(lambda: place.count("SELECT count(*) FROM ledger WHERE job_id = ANY (%s)", last) > 5, 30, "work")
    place.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    rows = place.finished(*last, timeout=60)
    assert {(row["status"], row["crashes"], row["attempts"]) for row in rows} == {("succeeded", 0, 0)}
    assert place.count("SELECT count(*) FROM ledger WHERE job_id = ANY (%s)", last) == 60
    assert place.rows("SELECT * FROM pipeline.verify(false)") == []


def test_each_transaction_behind_a_pooler_has_our_bounds_and_leaves_none_behind(behind: str, place: Place) -> None:
    """F24: poolers refuse settings in the greeting. In transaction mode a session is everybody's."""
    pool = engine(settings.get().dsn, pooled=settings.get().pooled)
    with pool.begin() as connection:
        assert connection.exec_driver_sql(TIMEOUT).scalar_one() == "15s"
    pool.dispose()
    if behind == "transaction":
        with psycopg.connect(settings.get().dsn, prepare_threshold=None) as somebody:
            assert somebody.execute(TIMEOUT).fetchone() == ("0",)
    with connect(settings.get().session_dsn, "test") as wire:
        assert wire.execute("SHOW plan_cache_mode").fetchone() == ("force_generic_plan",)
