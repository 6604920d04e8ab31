"""The relay's leader, and queues that RabbitMQ takes nothing for."""

from __future__ import annotations

import threading
from time import monotonic
from types import SimpleNamespace

import psycopg
import pytest

from pipeline.dev.services import Servers
from pipeline.journey import relay
from pipeline.journey.relay import FIRST, LONGEST, Refusals, Relay
from pipeline.store.leader import DEPOSE, LeaderLock, waiting_to_lead
from tests.databases import Databases
from tests.pace import pace
from tests.place import Place

STALE = """INSERT INTO pipeline.workers (id, host, pid, threads, queues, heartbeat_at)
    VALUES ('stale', 'h', 1, 1, '{}', now() - interval '2 minutes') RETURNING no"""


def leader(url: str, no: int) -> psycopg.Connection[tuple[object, ...]]:
    connection = psycopg.connect(url, autocommit=True, application_name=f"pipeline relay {no}")
    connection.execute("BEGIN")
    connection.execute("LOCK TABLE pipeline.relay_leader IN SHARE UPDATE EXCLUSIVE MODE")
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
        place.db.execute(DEPOSE, ("pipeline relay ", "pipeline.relay_leader"))
        assert (alive(ours), alive(theirs)) == (False, True)
    databases.give_back(other)


def lost(lock: LeaderLock) -> bool:
    try:
        lock.check()
    except psycopg.OperationalError:
        return True
    return False


def test_a_queue_that_refuses_is_left_alone_longer_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are not held up by it; the first success forgets it."""
    clock = 100.0
    monkeypatch.setattr(relay, "monotonic", lambda: clock)
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


def test_whoever_waits_to_lead_holds_nobody_up(place: Place) -> None:
    """Neither vacuum, by a snapshot, nor an operator who vacuums everything; and takes over when the leader goes."""
    taken: list[bool] = []
    url = place.database_url
    with (
        waiting_to_lead(url, "relay", "relay_leader", 1) as leader,
        waiting_to_lead(url, "relay", "relay_leader", 2) as next_one,
    ):
        assert leader.take()
        waiting = threading.Thread(target=lambda: taken.append(next_one.take()))
        waiting.start()
        waits = """SELECT backend_xmin FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'pipeline relay 2' AND wait_event = 'relation'"""
        place.until(lambda: bool(place.rows(waits)), 10, "the second to wait")
        assert [row["backend_xmin"] for row in place.rows(waits)] == [None]
        place.db.execute("SET lock_timeout = '5s'")
        place.db.execute("VACUUM")
        place.db.execute("ANALYZE")
        assert not taken
        place.db.execute("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'pipeline relay 1'""")
        waiting.join(10)
        assert taken == [True]
        place.until(lambda: lost(leader), 5, "the old leader to notice")
        assert not lost(next_one)


def test_a_process_that_waits_to_lead_stops_at_once(place: Place) -> None:
    """A deploy does not wait for the lock's own patience."""
    outbound = SimpleNamespace(ready=threading.Event(), reconnects=0)
    outbound.ready.set()
    with waiting_to_lead(place.database_url, "relay", "relay_leader", 1) as leader:
        assert leader.take()
        relay = Relay(place.database_url, 2, outbound, backstop=30)  # type: ignore[arg-type]
        relay.start()
        waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'pipeline relay 2' AND wait_event = 'relation'"
        place.until(lambda: place.rows(waits), 10, "it to wait")
        with pace(place.database_url) as machine:
            started = monotonic()
            relay.stop()
            took = monotonic() - started
        assert took < machine.allows(1)
        assert not relay._leader.thread.is_alive()


def test_word_that_came_while_it_was_asking_is_not_slept_through(place: Place) -> None:
    """psycopg reads a notification with whatever answer comes next; the socket is silent then."""
    outbound = SimpleNamespace(ready=threading.Event(), reconnects=0)
    outbound.ready.set()
    relay = Relay(place.database_url, 1, outbound, backstop=0.2)  # type: ignore[arg-type]
    relay._asleep, relay._horizon = True, 3
    with psycopg.connect(place.database_url, autocommit=True) as connection:
        connection.execute("LISTEN pipeline_relay")
        place.db.execute("SELECT pg_notify('pipeline_relay', '')")
        connection.execute("SELECT 1")
        relay._rest(connection)
        assert (relay._asleep, relay._horizon) == (False, 0), "it was told, and is awake"
        relay._asleep, relay._horizon = True, 3
        relay._rest(connection)
        assert relay._asleep, "it was told once, and kept sleeping"


def test_a_relay_that_leads_again_forgets_its_sleep(place: Place) -> None:
    """Another has led meanwhile: who took that one for awake is looked for before this one sleeps."""
    outbound = SimpleNamespace(ready=threading.Event(), reconnects=0)
    relay = Relay(place.database_url, 1, outbound, backstop=30)  # type: ignore[arg-type]
    relay._asleep, relay._horizon = True, 3
    relay._leader.stopping = True
    with psycopg.connect(place.database_url, autocommit=True) as connection:
        relay._lead(SimpleNamespace(), connection)  # type: ignore[arg-type]
    assert (relay._asleep, relay._horizon) == (False, 0)
