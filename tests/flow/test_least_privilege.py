"""docs/security.md: workers need no more of PostgreSQL than to read and write rows and to call functions."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from pipeline import submit
from tests.place import Place

GRANTS = """
    GRANT CONNECT ON DATABASE "{database}" TO {role};
    GRANT USAGE ON SCHEMA public TO {role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role};"""


@pytest.fixture
def humble(place: Place) -> Iterator[str]:
    """The address of the test's database for a role that has these send_credits and nothing else."""
    role, password = f"humble_{secrets.token_hex(4)}", secrets.token_hex(16)
    place.db.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
    place.db.execute(GRANTS.format(database=place.name, role=role))
    server = urlsplit(place.database_url)
    yield f"postgresql://{role}:{password}@{server.hostname}:{server.port}{server.path}"
    place.close()
    place.db.execute(f"DROP OWNED BY {role}")
    place.db.execute(f"DROP ROLE {role}")


def test_workers_do_everything_under_a_role_that_may_only_use_rows_and_functions(place: Place, humble: str) -> None:
    """Claim, hand over, heartbeat, retry, take over from a dead worker: nothing needs more."""
    with psycopg.connect(humble, autocommit=True) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE mine (id int)")
    place.worker(threads=2, DATABASE_URL=humble)
    through, again = submit(None, "triple"), submit(None, "single", {"do": "flaky"})
    assert [row["status"] for row in place.finished(through, again)] == ["succeeded"] * 2
    orphan = submit(None, "single", {"do": "sleep", "seconds": 30})
    place.running(orphan)
    victim = place.holder(orphan)
    place.worker(threads=2, DATABASE_URL=humble)
    os.kill(victim, signal.SIGKILL)
    [row] = place.finished(orphan)
    assert (row["status"], row["crashes"]) == ("succeeded", 1)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.workers WHERE stopped_at IS NOT NULL"), 20, "the reclaim"
    )
    assert "permission denied" not in place.logs()
