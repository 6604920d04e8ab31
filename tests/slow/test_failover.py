"""G1, G6, G7: a failover of PostgreSQL to a synchronous standby is a restart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import UUID

import pytest

from chaos.pair import Pair
from pipeline import submit_many
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


@pytest.fixture
def pair(users: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Everybody is told both hosts."""
    from pipeline import settings

    found = Pair(users.servers.postgres, users.folder / "standby")
    found.open()
    users.database_url = found.url(users.name)
    monkeypatch.setenv("DATABASE_URL", users.database_url)
    settings.get.cache_clear()
    yield found
    users.close()
    found.close()


def submit_through_outages(n: int) -> list[UUID]:
    bodies = [{"seconds": 0.1, "n": number} for number in range(JOBS)]
    while True:
        try:
            return submit_many(None, "triple", bodies, keys=[f"{n}:{number}" for number in range(JOBS)])
        except Exception as error:
            if not database_is_unable(error):
                raise
            time.sleep(0.1)


def test_ten_failovers_under_load_lose_nothing_and_charge_nobody(users: Place, pair: Pair) -> None:
    """Effects are there once; work resumes within seconds of the promotion."""
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
