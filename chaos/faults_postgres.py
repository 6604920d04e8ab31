"""Faults of the database."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import psycopg

from chaos.fault import Hits, Scene, fault

# A job whose connection was lost waits for a second, at no cost.
AWAY = ["parked"]
TERMINATE = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


@fault("PostgreSQL immediate restart", explains=AWAY)
def restart_immediately(scene: Scene) -> Hits:
    """As after a crash: sessions are cut, the log is replayed."""
    with scene.stage.postgres_lock:
        scene.pause(0.2, 1.5)
        scene.stage.servers.postgres.restart("immediate")
    return Hits(1, "restart")


@fault("PostgreSQL fast restart", explains=AWAY)
def restart_fast(scene: Scene) -> Hits:
    """As an operator would."""
    with scene.stage.postgres_lock:
        scene.pause(0.2, 1.5)
        scene.stage.servers.postgres.restart("fast")
    return Hits(1, "restart")


@fault("all backends terminated", explains=AWAY)
def terminate(scene: Scene) -> Hits:
    """Every session but the one that does it, several times."""
    ended = 0
    for _ in range(3):
        scene.pause(0.5, 2.0)
        ended += scene.observer.one(TERMINATE) or 0
    return Hits(ended, "sessions")


@fault("all connections of PostgreSQL used", explains=AWAY)
def use_all_connections(scene: Scene) -> Hits:
    """The pools' sessions are ended and every slot is taken for some seconds."""
    url = scene.stage.servers.postgres.url(scene.stage.name)
    with scene.stage.postgres_lock, ExitStack() as stack:
        scene.observer.one("SELECT 1")  # our own eyes stay open
        taken = _take_all(stack, url)
        scene.observer.one(TERMINATE + " AND application_name = 'pipeline'")
        taken += _take_all(stack, url)
        scene.pause(4, 8)
    return Hits(taken, "connections")


def _take_all(stack: ExitStack, url: str) -> int:
    taken = 0
    with suppress(psycopg.OperationalError):
        while taken < 1000:
            stack.callback(psycopg.connect(url, application_name="greedy").close)
            taken += 1
    return taken


@fault("table jobs locked for a minute", explains=["stale", "crashed", *AWAY])
def lock_jobs(scene: Scene) -> Hits:
    """No claim, no completion and no heartbeat gets through; leases run out meanwhile."""
    # A restart meanwhile, in a pair, ends the lock early.
    with suppress(psycopg.OperationalError), psycopg.connect(scene.stage.servers.postgres.url(scene.stage.name)) as db:
        db.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        scene.pause(60, 60)
    return Hits(1, "lock")
