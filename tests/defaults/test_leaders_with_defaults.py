"""F4: only a relay that reaches RabbitMQ leads."""

from __future__ import annotations

from time import monotonic

from chaos.proxy import Proxy
from pipeline import submit
from tests.place import Place

LEADER = """SELECT w.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pipeline.workers w ON a.application_name = 'pipeline relay ' || w.no
    WHERE a.datname = current_database() AND l.granted AND l.relation = 'pipeline.relay_leader'::regclass"""


def test_a_leader_without_rabbitmq_lets_another_lead(users: Place) -> None:
    """A job that is submitted then starts within ten seconds."""
    url = users.environment()["RABBITMQ_URL"]
    port = int(url.rpartition(":")[2].partition("/")[0])
    with Proxy(port) as proxy:
        users.worker(threads=2, RABBITMQ_URL=url.replace(f":{port}/", f":{proxy.port}/"))
        [first] = users.pids()
        users.until(lambda: users.rows(LEADER) == [{"pid": first}], 20, "the first to lead")
        users.worker(threads=2)
        with proxy.behaving("cut"):
            started = monotonic()
            job = submit(None, "everyday", {"do": "ledger"})
            users.until(users.executions, 20, "the job to start")
            print(f"leader without RabbitMQ: the next job starts after {monotonic() - started:.1f} s")
            assert monotonic() - started < 10
            users.finished(job)
            assert users.rows(LEADER) != [{"pid": first}]
