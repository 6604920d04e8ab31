"""The relay's leader, and queues that RabbitMQ takes nothing for."""

from __future__ import annotations

import psycopg
import pytest

from pipeline.flow import refusals
from pipeline.flow.refusals import FIRST, LONGEST, Refusals
from pipeline.flow.seat import DEPOSE, TAKE
from pipeline.services import Servers
from tests.databases import Databases
from tests.place import Place

STALE = """INSERT INTO workers (id, host, pid, threads, queues, heartbeat_at)
    VALUES ('stale', 'h', 1, 1, '{}', now() - interval '2 minutes') RETURNING no"""


def leader(url: str, no: int) -> psycopg.Connection[tuple[object, ...]]:
    connection = psycopg.connect(url, autocommit=True, application_name=f"pipeline relay {no}")
    connection.execute("BEGIN")
    connection.execute(TAKE)
    return connection


def alive(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def test_only_this_databases_leader_is_deposed(place: Place, servers: Servers, databases: Databases) -> None:
    """Two pipelines may share a server: a stale worker here says nothing about the other's leader of that number."""
    [row] = place.rows(STALE)
    other = databases.new("other")
    with leader(place.database_url, row["no"]) as ours, leader(servers.postgres.url(other), row["no"]) as theirs:
        place.db.execute(DEPOSE)
        assert (alive(ours), alive(theirs)) == (False, True)
    databases.give_back(other)


def test_a_queue_that_refuses_is_left_alone_longer_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are not held up by it; the first success forgets it."""
    clock = 100.0
    monkeypatch.setattr(refusals, "monotonic", lambda: clock)
    queues = Refusals()
    pauses = []
    for _ in range(8):
        queues.heard(["full", "fine"], ["full"])
        assert queues.resting() == ["full"]
        pauses.append(queues.next_try())
        clock += pauses[-1] + 0.001
        assert queues.resting() == []
    assert pauses[:3] == pytest.approx([FIRST, 2 * FIRST, 4 * FIRST]) and pauses[-2:] == pytest.approx([LONGEST] * 2)
    queues.heard(["full"], [])
    queues.heard(["full"], ["full"])
    assert queues.next_try() == pytest.approx(FIRST)
