"""submit, cancel and the like for every kind of caller: each in the caller's own transaction, with the same answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import sessionmaker

from pipeline import BadInput, cancel, open_batch, replay, seal_batch, submit, submit_many
from pipeline.dev.services import Servers
from tests.databases import Lasting
from tests.db import steps
from tests.db.applications import APPLICATIONS, Application
from tests.db.steps import Db
from tests.workflows import single

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.fixture
def url(servers: Servers, lasting: Lasting, database: Db) -> str:
    return servers.postgres.url(lasting.name)


@pytest.fixture(params=APPLICATIONS)
def app(request: pytest.FixtureRequest, url: str) -> Iterator[Application]:
    with APPLICATIONS[request.param](url) as opened:
        yield opened


def jobs(database: Db) -> list[UUID]:
    return [row["id"] for row in steps.rows(database, "SELECT id FROM pipeline.jobs ORDER BY id")]


def test_a_job_exists_once_its_callers_transaction_commits(app: Application, database: Db) -> None:
    """Not before; then it can be sent and claimed."""
    job = app.ask(submit(app.caller, "single", {"text": 'a "quoted" \\ {word}, é'}))
    assert type(job) is UUID and jobs(database) == []
    app.commit()
    assert jobs(database) == [job]
    assert steps.job(database, job)["body"] == {"text": 'a "quoted" \\ {word}, é'}
    assert steps.hold(database, job).fence == 1


def test_a_rollback_leaves_nothing(app: Application, database: Db) -> None:
    """One job or many, and no batch."""
    with steps.nothing_changes(database):
        app.ask(submit(app.caller, "single"))
        app.ask(submit_many(app.caller, "triple", [{}, {}]))
        app.ask(open_batch(app.caller, "single"))
        app.rollback()


def test_many_jobs_are_submitted_in_their_order(app: Application, database: Db) -> None:
    """And none is none."""
    found = app.ask(submit_many(app.caller, "single", [{"n": n} for n in range(20)]))
    assert app.ask(submit_many(app.caller, "single", [])) == []
    app.commit()
    assert [steps.job(database, job)["body"] for job in found] == [{"n": n} for n in range(20)]
    assert all(type(job) is UUID for job in found)


def test_every_option_arrives(app: Application, database: Db) -> None:
    """Whatever types the driver knows."""
    due = datetime(2100, 1, 2, 3, 4, 5, 678, UTC)
    batch = app.ask(open_batch(app.caller, "triple", {"of": "batch"}))
    options: dict[str, Any] = {"priority": 7, "batch": batch, "due": due, "traceparent": TRACE, "rate_limit": "api"}
    one = app.ask(submit(app.caller, "single", {}, key='a "key"', **options))
    many = app.ask(submit_many(app.caller, "single", [{}, {}], keys=['a "key"', "b\\,{}"], **options))
    app.commit()
    assert many[0] == one and type(batch) is UUID
    for job, key in zip(many, ['a "key"', "b\\,{}"], strict=True):
        row = steps.job(database, job)
        assert (row["priority"], row["batch_id"], row["next_retry_at"]) == (7, batch, due)
        assert (row["idempotency_key"], row["trace_id"], row["rate_limit"]) == (key, "a" * 32, "api")


def test_the_same_key_gives_the_same_job(app: Application, database: Db) -> None:
    """Of another transaction, or of this one."""
    first = steps.submit(database, key="k")
    assert app.ask(submit(app.caller, "single", key="k")) == first
    assert app.ask(submit(app.caller, "single", key="l")) == app.ask(submit(app.caller, "single", key="l"))
    app.commit()
    assert len(jobs(database)) == 2


def test_a_cancel_belongs_to_the_transaction(app: Application, database: Db) -> None:
    """True for the call that did it."""
    job = steps.submit(database)
    with steps.nothing_changes(database):
        assert app.ask(cancel(app.caller, job, "enough")) is True
        assert app.ask(cancel(app.caller, job)) is False
        assert app.ask(cancel(app.caller, uuid4())) is False
        app.rollback()


def test_a_cancel_is_kept_by_a_commit(app: Application, database: Db) -> None:
    job = steps.submit(database)
    assert app.ask(cancel(app.caller, job, "enough")) is True
    app.commit()
    assert (steps.job(database, job)["status"], jobs(database)) == ("cancelled", [job])


def test_a_failed_job_is_replayed(app: Application, database: Db) -> None:
    """Once."""
    hold = steps.held(database)
    steps.fail(database, hold)
    assert app.ask(replay(app.caller, hold.job)) is True
    assert app.ask(replay(app.caller, hold.job)) is False
    assert steps.job(database, hold.job)["status"] == "failed"
    app.commit()
    assert steps.job(database, hold.job)["status"] == "pending"


def test_a_sealed_batch_submits_its_callback(app: Application, database: Db) -> None:
    """An empty one at once."""
    batch = app.ask(open_batch(app.caller, "triple", {"n": 1}))
    assert app.ask(seal_batch(app.caller, batch)) is None
    app.commit()
    [job] = jobs(database)
    row = steps.job(database, job)
    assert (row["workflow"], row["body"]["n"], row["body"]["batch"]["id"]) == ("triple", 1, str(batch))


@pytest.mark.parametrize(
    ("workflow", "options", "says"),
    [
        ("nonsense", {}, "unknown workflow 'nonsense': known workflows: "),
        ("single", {"priority": 10}, "priority 10 is outside 0 … 9: 0 is the default, 9 goes first"),
        ("single", {"batch": UUID(int=1)}, f"batch {UUID(int=1)} is sealed or unknown: open a new batch"),
        ("single", {"body": {"when": object()}}, "the body cannot be stored as JSON"),
    ],
)
def test_a_refusal_reads_the_same_for_every_caller(
    app: Application, database: Db, workflow: str, options: dict[str, Any], says: str
) -> None:
    """The reason and what to do, without a driver's own words."""
    with steps.nothing_changes(database):
        with pytest.raises(BadInput) as refused:
            app.ask(submit(app.caller, workflow, **options))
        assert str(refused.value).startswith(says)
        app.rollback()


def test_other_errors_of_the_database_stay_what_they_are(app: Application, database: Db) -> None:
    """A caller's own handling of them must see its library's classes."""
    with pytest.raises(Exception, match="uuid") as raised:
        app.ask(cancel(app.caller, "not an id"))  # type: ignore[call-overload]
    assert not isinstance(raised.value, BadInput)
    assert type(raised.value).__module__.split(".")[0] in ("sqlalchemy", "psycopg", "asyncpg", "django")
    app.rollback()


def test_a_workflow_submits_for_every_caller(app: Application, database: Db) -> None:
    """As the functions do."""
    one = app.ask(single.submit({"n": 0}, session=app.caller, key="k"))
    many = app.ask(single.submit_many([{"n": 1}, {"n": 2}], session=app.caller))
    app.commit()
    assert [steps.job(database, job.id)["body"]["n"] for job in (one, *many)] == [0, 1, 2]


def test_a_connection_that_commits_each_statement_submits_at_once(url: str, database: Db) -> None:
    """There is no transaction to wait for."""
    with psycopg.connect(url, autocommit=True) as connection:
        job = submit(connection, "single")
        assert jobs(database) == [job]


def test_a_cursors_own_rows_are_left_to_it(url: str) -> None:
    """A caller may be in the middle of reading them."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT generate_series(1, 3)")
        assert cursor.fetchone() == (1,)
        submit(cursor, "single")
        assert cursor.fetchall() == [(2,), (3,)]


def test_a_caller_without_a_transaction_is_refused(url: str) -> None:
    """With what was given, and what is accepted instead."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    others: list[Any] = [
        "orders",
        engine,
        sessionmaker(engine),
        create_async_engine(url.replace("postgresql:", "postgresql+psycopg:")),
    ]
    for other in others:
        with pytest.raises(TypeError) as refused:
            submit(other, "single")
        name = type(other).__qualname__
        assert f"{name} does not have. Accepted: " in str(refused.value)
        assert "AsyncSession" in str(refused.value) and "django.db.connection" in str(refused.value)
        with pytest.raises(TypeError, match=name):
            submit_many(other, "single", [])


def test_a_connection_to_another_database_is_refused(url: str) -> None:
    """Its name is said."""
    from django.db.utils import ConnectionHandler

    with APPLICATIONS["django.db.connection"](url) as app:
        app.rollback()
    lite = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})["default"]
    with pytest.raises(TypeError, match="Django's connection to sqlite does not have"):
        submit(lite, "single")
    with (
        create_engine("sqlite://").connect() as connection,
        pytest.raises(TypeError, match="a connection to sqlite does not have"),
    ):
        submit(connection, "single")


def test_no_library_is_loaded_that_the_caller_does_not_bring() -> None:
    """Those of other callers need not even be installed."""
    code = """if True:
        import sys
        from pipeline import submit
        try:
            submit(object(), "single")
        except TypeError:
            print(*{"asyncpg", "django", "sqlalchemy.orm", "sqlalchemy.ext.asyncio"} & set(sys.modules))
    """
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
