"""docs/security.md: clients, workers and operators do their work with what ``pipeline migrate --grant`` gives them."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import create_engine

from pipeline import cancel, job, open_batch, replay, seal_batch, settings, submit
from tests.commands import pipeline, pipeline_here
from tests.db import steps
from tests.place import Place

RELATIONS = (
    """SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'pipeline'::regnamespace AND c.relkind IN ('r', 'v')"""
)
WORKERS_OWN = (
    "pipeline.claim('w', '{}', '{}', '{}', '{}', '{}')",
    "pipeline.complete(1, '{}', '{}', '{}', '{}')",
    "pipeline.heartbeat('w', '{}', '{}', NULL, '{}')",
    "pipeline.admit(1, 1)",
    "pipeline.fail('00000000-0000-0000-0000-000000000000', 1, '')",
    "pipeline.prune('0', 1)",
)
OPERATORS_OWN = (
    "pipeline.verify(true)",
    "pipeline.discard('00000000-0000-0000-0000-000000000000', '')",
    "pipeline.delete('{}')",
    "pipeline.set_rate_limit('shop', 1)",
    "pipeline.stats()",
)


@pytest.fixture
def granted(place: Place) -> Iterator[Callable[[str], str]]:
    """The address of the test's database for a role that has the rights of a kind and no others."""
    made: list[str] = []

    def make(kind: str) -> str:
        role, password = f"{kind}_{secrets.token_hex(4)}", secrets.token_hex(16)
        place.db.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'".encode())
        made.append(role)
        answer = pipeline(place, "migrate", "--grant", f"{kind}={role}")
        assert answer.returncode == 0, answer.stderr
        assert f"granted: {role} is a {kind}; it may" in answer.stderr.replace("\n", " ")
        server = urlsplit(place.database_url)
        return f"postgresql://{role}:{password}@{server.hostname}:{server.port}{server.path}"

    yield make
    place.close()
    for role in made:
        place.db.execute(f"DROP OWNED BY {role}".encode())
        place.db.execute(f"DROP ROLE {role}".encode())


def refused(url: str, *statements: str) -> None:
    """Each of them for want of a right, and not for another reason."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            with pytest.raises(InsufficientPrivilege):
                connection.execute(statement.encode())


def test_a_client_submits_and_cancels_from_sql_and_reaches_nothing_else(
    place: Place, granted: Callable[[str], str]
) -> None:
    """EXECUTE on its functions is enough; tables, workers' and operators' functions are out of its reach."""
    client = granted("client")
    with psycopg.connect(client, autocommit=True) as connection:
        batch = connection.execute("SELECT pipeline.open_batch('plain')").fetchone()
        assert batch
        job = connection.execute("SELECT pipeline.submit('single', '{}', p_batch => %s)", batch).fetchone()
        assert job
        connection.execute("SELECT pipeline.seal_batch(%s)", batch)
        assert connection.execute("SELECT pipeline.request_send(%s, 'single.act')", job).fetchone() == ("accepted",)
        assert connection.execute("SELECT pipeline.cancel(%s)", job).fetchone() == (True,)
        assert connection.execute("SELECT pipeline.replay(%s)", job).fetchone() == (True,)
        assert connection.execute("SELECT pipeline.cancel(%s)", job).fetchone() == (True,)
    assert place.job(job[0])["status"] == "cancelled"
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'plain'") == 1
    names = [row["relname"] for row in place.rows(RELATIONS)]
    refused(client, *(f"SELECT * FROM pipeline.{name}" for name in names))
    refused(client, "INSERT INTO pipeline.counter_totals VALUES ('jobs', 1)", "UPDATE pipeline.jobs SET priority = 9")
    refused(client, "DELETE FROM pipeline.jobs", "TRUNCATE pipeline.outbox")
    refused(client, *(f"SELECT {call}" for call in (*WORKERS_OWN, *OPERATORS_OWN)))
    refused(client, "CREATE TABLE pipeline.mine (id integer)")


def test_a_client_submits_and_cancels_from_python_in_its_own_transaction(
    place: Place, granted: Callable[[str], str]
) -> None:
    """pipeline.submit(connection, …) needs no more than SQL does."""
    engine = create_engine(granted("client").replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        batch = open_batch(connection, "plain")
        kept, dropped = submit(connection, "single", {"n": 1}, batch=batch), submit(connection, "single", key="once")
        seal_batch(connection, batch)
        assert cancel(connection, dropped) and replay(connection, dropped) and cancel(connection, dropped)
    with engine.connect() as connection:
        never = submit(connection, "single")
        connection.rollback()
    engine.dispose()
    assert [place.job(job)["status"] for job in (kept, dropped)] == ["pending", "cancelled"]
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE id = %s", never) == 0


def test_a_client_waits_for_results_and_watches(
    place: Place, granted: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handle needs no more than a submit, in the process and over its own connection."""
    monkeypatch.setenv("DATABASE_URL", granted("client"))
    settings.get.cache_clear()
    hold, other = steps.held(place.db), steps.submit(place.db)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(job(hold.job).result, 20)
        place.until(lambda: place.count("SELECT count(*) FROM pipeline.outbox WHERE awaited"), 20, "the waiter")
        steps.complete(place.db, hold, {"n": 1})
        assert waiting.result() == {"n": 1}
    watching = job(other).watch()
    assert next(watching).state == "pending"
    assert not job(other).replay() and job(other).cancel()
    assert [status.state.value for status in watching] == ["cancelled"]
    place.db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pipeline result'"
    )


def test_triggers_of_the_application_do_their_work_inside_of_a_clients_call(
    place: Place, granted: Callable[[str], str]
) -> None:
    """A cancel takes the pages of a document with it; the client has no right on them."""
    with psycopg.connect(granted("client"), autocommit=True) as connection:
        row = connection.execute("SELECT pipeline.submit('document', '{\"document_number\": \"1\"}')").fetchone()
        assert row
        place.db.execute(
            "INSERT INTO document_pages (job_id, page, text, boosted, engine, fence) VALUES (%s, 1, '', '', 'local', 1)",
            row,
        )
        assert connection.execute("SELECT pipeline.cancel(%s)", row).fetchone() == (True,)
    assert place.count("SELECT count(*) FROM document_pages") == 0


def test_workers_do_everything_with_the_rights_of_a_worker(place: Place, granted: Callable[[str], str]) -> None:
    """Claim, hand over, heartbeat, retry, lead, take over from a dead worker, reclaim: nothing needs more."""
    worker = granted("worker")
    # What the phases themselves write is the application's to grant.
    place.db.execute(f"GRANT SELECT, INSERT ON ledger TO {urlsplit(worker).username}".encode())
    place.db.execute(f"GRANT USAGE ON SEQUENCE ledger_id_seq TO {urlsplit(worker).username}".encode())
    refused(worker, "CREATE TABLE mine (id int)", "DROP FUNCTION pipeline.new_id()")
    refused(worker, "INSERT INTO pipeline.own_functions VALUES ('x')", "SELECT * FROM pipeline.granted_roles")
    place.worker(threads=2, DATABASE_URL=worker)
    through, again = submit(None, "triple"), submit(None, "single", {"do": "flaky"})
    assert [row["status"] for row in place.finished(through, again)] == ["succeeded"] * 2
    orphan = submit(None, "single", {"do": "sleep", "seconds": 30})
    place.running(orphan)
    victim = place.holder(orphan)
    place.worker(threads=2, DATABASE_URL=worker)
    os.kill(victim, signal.SIGKILL)
    [row] = place.finished(orphan)
    assert (row["status"], row["crashes"]) == ("succeeded", 1)
    place.until(
        lambda: place.count("SELECT count(*) FROM pipeline.workers WHERE stopped_at IS NOT NULL"), 20, "the reclaim"
    )
    assert "permission denied" not in place.logs()


def test_an_operator_repairs_without_a_right_to_write(place: Place, granted: Callable[[str], str]) -> None:
    """Replay, discard, reset and verify, from the command line; rows change through functions alone."""
    operator = granted("operator")
    failed = [steps.held(place.db, "single") for _ in range(3)]
    for hold in failed:
        steps.fail(place.db, hold)
    lost = steps.held(place.db, "single", "w-dead")
    steps.sign_on(place.db, "w-dead", alive=False)
    for words in (
        ("jobs", "--workflow", "single"),
        ("dead", "list"),
        ("dead", "groups"),
        ("workers",),
        ("watch", "--once"),
        ("status", str(lost.job)),
        ("pause", "triple"),
        ("resume", "triple"),
    ):
        answer = pipeline_here(place, *words, "--json", DATABASE_URL=operator)
        assert answer.returncode == 0, (words, answer.stderr)
    answer = pipeline_here(place, "verify", "--json", DATABASE_URL=operator)
    assert answer.returncode == 0, answer.stderr
    assert str(lost.job) in answer.stdout and place.job(lost.job)["status"] == "pending"
    with psycopg.connect(operator, autocommit=True) as connection:
        connection.execute("SELECT pipeline.replay_many(%s)", ([failed[0].job],))
        connection.execute("SELECT pipeline.replay(%s)", (failed[1].job,))
        connection.execute("SELECT pipeline.discard(%s, 'of no use')", (failed[2].job,))
        connection.execute("SELECT pipeline.set_rate_limit('shop', 5)")
        connection.execute("SELECT pipeline.pause('single.act', 1)")
        connection.execute("SELECT * FROM pipeline.processors")
    assert [place.job(hold.job)["status"] for hold in failed] == ["pending", "pending", "cancelled"]
    refused(operator, "UPDATE pipeline.jobs SET priority = 9", "DELETE FROM pipeline.attempts")
    refused(operator, *(f"SELECT {call}" for call in WORKERS_OWN))


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("reader=shop", 'pipeline: "reader" is not a kind of role: the kinds are client, worker, operator\n'),
        (
            "client=nobody_there",
            'pipeline: there is no role "nobody_there" in PostgreSQL: create it first, with CREATE ROLE\n',
        ),
        ("shop", 'pipeline: "shop" does not say who gets what: write KIND=ROLE, such as client=shop\n'),
    ],
)
def test_a_grant_that_cannot_be_is_refused_in_one_sentence(place: Place, wish: str, said: str) -> None:
    """No trace of a stack, and exit code 1."""
    answer = pipeline_here(place, "migrate", "--grant", wish)
    assert (answer.returncode, answer.stderr.splitlines(keepends=True)[-1]) == (1, said)
