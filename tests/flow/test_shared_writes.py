"""Writes of several jobs share a commit. One that misbehaves harms none of its neighbours, and shares no more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest
from sqlalchemy import Connection, insert, table, text
from sqlalchemy import column as named

from pipeline import Done
from pipeline.declare.errors import Misuse, StaleClaim
from pipeline.declare.job import Write
from pipeline.journey.attempt import Attempt
from pipeline.store import database
from pipeline.store.shared_writes import SharedWrites
from pipeline.worker.essential import essential_thread
from tests.place import Place
from tests.settling import INSERT, Worker, good, together

if TYPE_CHECKING:
    pass

COMMITS = "SELECT count(DISTINCT xmin::text) FROM ledger"
REFUSED_AT_COMMIT = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.phase = 'bad') EXECUTE FUNCTION refuse()"""


@pytest.fixture
def worker(place: Place) -> Iterator[Worker]:
    writes = SharedWrites(place.database_url, 1, thread=essential_thread)
    yield Worker(writes, place)
    writes.stop()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_writes_of_many_jobs_are_one_commit(worker: Worker, threads: ThreadPoolExecutor) -> None:
    """Seven jobs that were ready while the first was being written."""
    held = [worker.hold("single") for _ in range(7)]
    for future in together(worker, threads, [(one, good(one)) for one in held]):
        future.result(10)
    assert worker.place.count(COMMITS) == 2
    assert {one.job_id for one in held} <= set(worker.succeeded())
    assert worker.place.count("SELECT count(*) FROM ledger") == 8


def test_a_write_sees_its_job_as_the_phase_did(worker: Worker, threads: ThreadPoolExecutor) -> None:
    """Also if others of the same batch end with it: whoever looks whether it is the last must not be told so twice."""
    held = [worker.hold("single") for _ in range(3)]
    seen: list[str] = []

    def write(connection: Connection) -> None:
        seen.extend(connection.execute(text("SELECT status FROM pipeline.jobs WHERE id = ANY (:jobs)"), jobs).scalars())

    jobs = {"jobs": [one.job_id for one in held]}
    for future in together(worker, threads, [(one, write) for one in held]):
        future.result(10)
    assert seen == ["running"] * 9


def test_statements_are_written_as_they_are_given(worker: Worker) -> None:
    """Text or built, with one row of values or many."""
    held = worker.hold("single")
    ledger = table("ledger", named("job_id"), named("phase"), named("fence"))
    row = {"job": held.job_id, "phase": "text"}
    done = Done(
        write=[
            (INSERT, [row, {**row, "phase": "again"}]),
            insert(ledger).values(job_id=held.job_id, phase="built", fence=1),
        ]
    )
    worker.settle(held, done.execute)
    phases = [one["phase"] for one in worker.place.rows("SELECT phase FROM ledger ORDER BY phase")]
    assert phases == ["again", "built", "text"]
    assert worker.place.count(COMMITS) == 1


def test_what_is_no_write_is_refused_where_it_is_made() -> None:
    with pytest.raises(Misuse, match="a function or a list of statements, not str"):
        Done(write=cast("Any", "INSERT INTO ledger"))


def fails(connection: Connection, held: Attempt) -> None:
    connection.execute(INSERT, {"job": held.job_id, "phase": "bad"})
    raise ValueError("a bug in it")


def swallows_an_error(connection: Connection, held: Attempt) -> None:
    try:
        connection.execute(text("SELECT 1 / 0"))
    except Exception:
        return


def fails_at_commit(connection: Connection, held: Attempt) -> None:
    connection.execute(INSERT, {"job": held.job_id, "phase": "bad"})


def blocks(connection: Connection, held: Attempt) -> None:
    connection.execute(text("UPDATE rows_to_lock SET n = n + 1 WHERE id = 1"))
    good(held)(connection)


def is_slow(connection: Connection, held: Attempt) -> None:
    good(held)(connection)
    time.sleep(2)


def is_slow_in_small_steps(connection: Connection, held: Attempt) -> None:
    for _ in range(20):
        connection.execute(text("SELECT pg_sleep(0.1)"))
    good(held)(connection)


def changes_a_setting(connection: Connection, held: Attempt) -> None:
    connection.execute(text("SET LOCAL search_path = pg_catalog"))
    connection.execute(
        text("INSERT INTO public.ledger (job_id, phase, fence) VALUES (:job, 'good', 1)"), {"job": held.job_id}
    )


def hides_a_setting(connection: Connection, held: Attempt) -> None:
    connection.execute(text("SELECT quietly()"))
    connection.execute(
        text("INSERT INTO public.ledger (job_id, phase, fence) VALUES (:job, 'good', 1)"), {"job": held.job_id}
    )


def commits(connection: Connection, held: Attempt) -> None:
    good(held)(connection)
    database.raw(connection).execute("COMMIT")


def commits_through_the_driver(connection: Connection, held: Attempt) -> None:
    good(held)(connection)
    database.raw(connection).commit()


def exits(connection: Connection, held: Attempt) -> None:
    raise SystemExit(3)


Misbehaves = Callable[..., None]


@pytest.mark.parametrize(
    ("misbehaves", "ends"),
    [
        (fails, ValueError),
        (swallows_an_error, Exception),
        (fails_at_commit, Exception),
        (blocks, None),
        (is_slow, None),
        (is_slow_in_small_steps, None),
        (changes_a_setting, None),
        (exits, SystemExit),
    ],
)
def test_one_that_misbehaves_harms_no_neighbour(
    worker: Worker, threads: ThreadPoolExecutor, misbehaves: Misbehaves, ends: type[BaseException] | None
) -> None:
    """Its neighbours commit once each; it gets what it would have got alone; the next time it does not share."""
    worker.place.db.execute(REFUSED_AT_COMMIT)
    before, bad, after = worker.hold("single"), worker.hold("small"), worker.hold("single")
    with psycopg.connect(worker.place.database_url) as app:
        if misbehaves is blocks:
            app.execute("SELECT 1 FROM rows_to_lock FOR UPDATE")
        futures = together(
            worker,
            threads,
            [(before, good(before)), (bad, partial(misbehaves, held=bad)), (after, good(after))],
        )
        futures[0].result(20), futures[2].result(20)
        app.rollback()
        if ends is None:
            futures[1].result(20)
        else:
            with pytest.raises(ends):
                futures[1].result(20)
    assert worker.place.count("SELECT count(*) FROM ledger WHERE phase = 'good'") == len(worker.ends)
    assert {before.job_id, after.job_id} <= set(worker.succeeded())
    assert (bad.job_id in worker.succeeded()) is (ends is None)
    assert worker.writes._alone.keys() == {"small.act"}


def test_one_that_hides_a_setting_is_found(worker: Worker, threads: ThreadPoolExecutor, place: Place) -> None:
    """Its neighbour fails where it would not, at first; the next time each is looked at."""
    place.db.execute(
        "CREATE FUNCTION quietly() RETURNS void LANGUAGE sql AS $$ SELECT set_config('search_path', 'pg_catalog', true) $$"
    )
    for _ in range(2):
        bad, after = worker.hold("small"), worker.hold("single")
        futures = together(worker, threads, [(bad, partial(hides_a_setting, held=bad)), (after, good(after))])
        for future in futures:
            future.result(20)
        if "small.act" not in worker.writes._alone:
            worker.writes._alone.clear()
    assert len(worker.succeeded()) == 6
    assert place.count("SELECT count(*) FROM ledger") == 6
    assert worker.writes._alone.keys() == {"small.act"}


@pytest.mark.parametrize("misbehaves", [commits, commits_through_the_driver])
def test_a_commit_inside_a_write_keeps_no_neighbours_write(
    worker: Worker, threads: ThreadPoolExecutor, misbehaves: Misbehaves
) -> None:
    """It is refused before it reaches the server. In a transaction of its own it harms its own job alone."""
    before, bad = worker.hold("single"), worker.hold("small")
    futures = together(worker, threads, [(before, good(before)), (bad, partial(misbehaves, held=bad))])
    futures[0].result(20)
    futures[1].exception(20)
    assert worker.place.count("SELECT count(*) FROM ledger WHERE job_id = %s", before.job_id) == 1
    assert worker.writes._alone.keys() == {"small.act"}


def test_counters_in_opposite_order_end(worker: Worker, threads: ThreadPoolExecutor, place: Place) -> None:
    """Two processes whose batches meet: one gives way, and each increment counts once."""
    place.db.execute(
        "CREATE TABLE counters (name text PRIMARY KEY, n integer); INSERT INTO counters VALUES ('a', 0), ('b', 0)"
    )
    other = Worker(SharedWrites(place.database_url, 2, thread=essential_thread), place, 2)

    def counts(names: str) -> Write:
        def write(connection: Connection) -> None:
            for name in names:
                connection.execute(text("UPDATE counters SET n = n + 1 WHERE name = :name"), {"name": name})

        return write

    futures = []
    for _ in range(20):
        futures.append(threads.submit(worker.settle, worker.hold("single"), counts("ab")))
        futures.append(threads.submit(other.settle, other.hold("small"), counts("ba")))
    for future in futures:
        future.result(30)
    other.writes.stop()
    assert [one["n"] for one in place.rows("SELECT n FROM counters")] == [40, 40]
    assert len(worker.succeeded() + other.succeeded()) == 40


def test_an_attempt_that_lost_its_job_writes_nothing(worker: Worker, threads: ThreadPoolExecutor, place: Place) -> None:
    """Its neighbour in the batch is none the wiser."""
    lost, fine = worker.hold("single"), worker.hold("single")
    place.db.execute("SELECT pipeline.cancel(%s)", (lost.job_id,))
    futures = together(worker, threads, [(lost, good(lost)), (fine, good(fine))])
    with pytest.raises(StaleClaim):
        futures[0].result(10)
    futures[1].result(10)
    assert place.count("SELECT count(*) FROM ledger WHERE job_id = %s", lost.job_id) == 0
    assert place.count("SELECT count(*) FROM ledger WHERE job_id = %s", fine.job_id) == 1


def test_a_phase_that_shares_no_more_shares_again_later(worker: Worker) -> None:
    """A minute at first, twice as long every time."""
    for seconds in (60, 120, 240):
        worker.writes.leave_alone(["single.act"], "a test")
        assert worker.writes._alone["single.act"][1] == seconds
