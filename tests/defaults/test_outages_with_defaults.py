"""F8, F9, F25: what PostgreSQL or RabbitMQ cannot just now costs no job anything."""

from __future__ import annotations

from pika import BlockingConnection

from pipeline import submit, submit_many
from tests.messages import publish_raw, take
from tests.place import Place

EVERYBODY_ELSE = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def test_a_database_that_is_read_only_for_a_while_is_waited_for(users: Place) -> None:
    """As after a failover: claims, completions, settlements and the phases' own writes meet it."""
    users.worker(threads=4)
    running = submit_many(None, "everyday", [{"do": "sleep", "seconds": 2, "n": n} for n in range(3)])
    flaky = submit(None, "single", {"do": "flaky"})
    for job in running:
        users.running(job)
    queued = submit_many(None, "everyday", [{"n": n} for n in range(10)])
    users.db.execute(f"ALTER DATABASE {users.name} SET default_transaction_read_only = on")
    users.db.execute(EVERYBODY_ELSE)
    users.until(lambda: "read-only" in users.logs(), 30, "the workers to meet it")
    users.db.execute(f"ALTER DATABASE {users.name} RESET default_transaction_read_only")
    rows = users.finished(*running, *queued, flaky, timeout=60)
    assert {row["status"] for row in rows} == {"succeeded"}
    assert {row["crashes"] for row in rows} == {0}
    assert [row["attempts"] for row in rows[:-1]] == [0] * 13
    done = [one[0] for one in users.executions()]
    assert [done.count(str(job)) for job in running] == [1] * 3, "the work itself was not repeated"


def test_after_a_long_outage_nobody_is_reclaimed_before_it_could_speak(users: Place) -> None:
    """Every heartbeat is old when PostgreSQL is back: the new leader's first look judges nobody."""
    users.worker(threads=2)
    job = submit(None, "everyday", {"do": "sleep", "seconds": 12})
    users.running(job)
    users.db.execute("UPDATE pipeline.jobs SET heartbeat_at = now() - interval '1 hour' WHERE status = 'running'")
    users.db.execute(EVERYBODY_ELSE)
    [row] = users.finished(job, timeout=60)
    assert (row["status"], row["fence"], row["crashes"]) == ("succeeded", 1, 0)


def test_a_dead_letter_whose_rejection_was_lost_is_rejected_when_it_comes_again(
    users: Place, rabbitmq: BlockingConnection
) -> None:
    """The connection broke between the job's failure and the message's rejection; a permanent error has no dead letter."""
    users.worker(threads=2)
    exhausted = submit(None, "single", {"do": "fail"})
    permanent = submit(None, "single", {"do": "permanent"})
    users.finished(exhausted, permanent, timeout=60)
    users.until(lambda: users.depth("single.act.XQ") == 1, 10, "the dead letter")
    [letter] = take(rabbitmq, "single.act.XQ")
    publish_raw(rabbitmq, "single.act", letter["body"])
    other = letter["body"].replace(str(exhausted).encode(), str(permanent).encode())
    other = other.replace(b'"send":3', b'"send":1')
    publish_raw(rabbitmq, "single.act", other)
    users.until(lambda: users.depth("single.act.XQ") == 1, 10, "the dead letter to be there again")
    users.until(lambda: users.depth("single.act") == 0, 10, "the other to be acknowledged")
    assert users.depth("single.act.XQ") == 1
    assert users.job(exhausted)["status"] == "failed"
