"""G1, G2, G6, G7: a failover of PostgreSQL to a synchronous standby is a restart; to another, it still has one holder a job."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from chaos.pair import Pair
from pipeline import settings, submit_many
from pipeline.declare.errors import database_is_unable
from pipeline.dev.services import Servers
from tests import shared
from tests.databases import Databases
from tests.place import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
FAILOVERS, JOBS = 10, 40
SINCE = "SELECT count(*) FROM ledger WHERE id > %s"
CHARGED = (
    "SELECT count(*) FROM pipeline.attempts WHERE outcome IN ('retried', 'failed', 'crashed', 'stale', 'poisoned')"
)
# Work has resumed when phases succeed again within so many seconds.
RESUMES = 10.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with shared.servers_of_their_own(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="module")
def databases(servers: Servers) -> Databases:
    return Databases(servers.postgres, shared.TEMPLATE)


@contextmanager
def standing_by(place: Place, monkeypatch: pytest.MonkeyPatch, *, synchronous: bool) -> Iterator[Pair]:
    """Everybody is told both hosts."""
    pair = Pair(place.servers.postgres, place.folder / "standby", synchronous=synchronous)
    pair.open()
    place.database_url = pair.url(place.name)
    monkeypatch.setenv("DATABASE_URL", place.database_url)
    settings.get.cache_clear()
    try:
        yield pair
    finally:
        place.close()
        pair.close()


def submit_through_outages(n: int) -> list[UUID]:
    bodies = [{"seconds": 0.1, "n": number} for number in range(JOBS)]
    while True:
        try:
            return submit_many(None, "triple", bodies, keys=[f"{n}:{number}" for number in range(JOBS)])
        except Exception as error:
            if not database_is_unable(error):
                raise
            time.sleep(0.1)


def test_ten_failovers_under_load_lose_nothing_and_charge_nobody(users: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Effects are there once; work resumes within seconds of the promotion."""
    with standing_by(users, monkeypatch, synchronous=True) as pair:
        _fail_over_ten_times(users, pair)


def _fail_over_ten_times(users: Place, pair: Pair) -> None:
    users.worker(threads=4, processes=2)
    jobs: list[UUID] = []
    resumed: list[float] = []
    for n in range(FAILOVERS):
        jobs += submit_through_outages(n)
        seen = users.count("SELECT coalesce(max(id), 0) FROM ledger")
        users.until(lambda seen=seen: users.count(SINCE, seen) >= 5, 60, "work to be under way")  # type: ignore[misc]
        moment = pair.fail_over()
        seen = users.count("SELECT coalesce(max(id), 0) FROM ledger")
        users.until(lambda seen=seen: users.count(SINCE, seen), 60, "work to resume")  # type: ignore[misc]
        resumed.append(time.monotonic() - moment)
        pair.follow()
    rows = users.finished(*jobs, timeout=180)
    print(f"\n{FAILOVERS} failovers, {len(jobs)} jobs; resumed after {', '.join(f'{s:.1f}' for s in resumed)} s")
    assert {row["status"] for row in rows} == {"succeeded"}
    assert users.count("SELECT count(*) FROM ledger") == 3 * len(jobs)
    assert users.count("SELECT count(DISTINCT (job_id, phase)) FROM ledger") == 3 * len(jobs)
    assert users.count(CHARGED) == 0
    assert max(resumed) < RESUMES
    assert users.rows("SELECT * FROM pipeline.verify(false)") == []


def test_ten_failovers_that_lose_the_last_commits_leave_no_two_holders(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G2: attempts of the lost past still run on; none runs under a fence that another has, and effects are there once."""
    with standing_by(place, monkeypatch, synchronous=False) as pair:
        place.worker(threads=4, processes=2)
        for n in range(FAILOVERS):
            submit_through_outages(2 * n)
            pair.caught_up()
            pair.cut()
            lost = submit_through_outages(2 * n + 1)
            place.until(
                lambda lost=lost: place.count("SELECT count(*) FROM ledger WHERE job_id = ANY (%s)", lost) > 5,  # type: ignore[misc]
                60,
                "work that will be lost",
            )
            pair.fail_over()
            pair.follow()
        open_jobs = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"
        place.until(lambda: place.count(open_jobs) == 0, 240, "what PostgreSQL knows to end")
        known = place.count("SELECT count(*) FROM pipeline.jobs")
        runs = Counter((job, fence) for job, _, fence, _ in place.executions())
        unknown = place.counter("refused.unknown_job")
        print(f"\n{FAILOVERS} failovers: {2 * FAILOVERS * JOBS - known} jobs forgotten, {known} done", end="; ")
        print(f"{len(runs)} attempts, {unknown} messages of unknown jobs")
        assert known < 2 * FAILOVERS * JOBS, "something must have been lost for this to show anything"
        assert max(runs.values()) == 1, "two attempts had one fence"
        assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status <> 'succeeded'") == 0
        assert place.count("SELECT count(*) FROM ledger") == 3 * known
        assert place.count("SELECT count(DISTINCT (job_id, phase)) FROM ledger") == 3 * known
        assert place.rows("SELECT * FROM pipeline.verify(false)") == []
