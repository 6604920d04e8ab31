"""Faults of the database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Literal

import psycopg

from chaos.fault import Hits, Scene, fault
from chaos.times import LEASE
from chaos.work import long_jobs
from pipeline.dev.services.rabbitmq_node import VHOST

# A job whose connection was lost waits for a second, at no cost.
AWAY = ["snoozed"]
TERMINATE = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


@fault("PostgreSQL immediate restart", explains=AWAY)
def restart_immediately(scene: Scene) -> Hits:
    """As after a crash: sessions are cut, the log is replayed."""
    return _restart(scene, "immediate")


@fault("PostgreSQL fast restart", explains=AWAY)
def restart_fast(scene: Scene) -> Hits:
    """As an operator would."""
    return _restart(scene, "fast")


@fault("PostgreSQL and RabbitMQ restarted together", explains=AWAY)
def restart_both(scene: Scene) -> Hits:
    """All messages come back while no worker has its lock again: a living worker's jobs are not taken for it."""
    stage, jobs = scene.stage, long_jobs(scene, 6, 15)
    with stage.postgres_lock, stage.rabbitmq_lock, ThreadPoolExecutor(1) as threads:
        stage.servers.rabbitmq.kill()
        database = threads.submit(stage.servers.postgres.restart, "fast")
        stage.servers.rabbitmq.start()
        if stage.name != VHOST:
            stage.servers.rabbitmq.create_vhost(stage.name)
        database.result()
    return Hits(2, "restarts", jobs=jobs)


@fault("PostgreSQL away for longer than a lease", explains=AWAY)
def outlast_leases(scene: Scene) -> Hits:
    """Phases end meanwhile: their ends are older than every heartbeat, and still count."""
    jobs = long_jobs(scene, 6, 10)
    with scene.stage.postgres_lock:
        scene.stage.servers.postgres.stop("fast")
        try:
            scene.pause(LEASE + 3, LEASE + 6)
        finally:
            scene.stage.servers.postgres.start()
    return Hits(1, "outage", jobs=jobs)


@fault("all backends terminated", explains=AWAY)
def terminate(scene: Scene) -> Hits:
    """Every session but the one that does it, several times."""
    ended, jobs = 0, long_jobs(scene, 6, 12)
    for _ in range(3):
        scene.pause(0.5, 2.0)
        ended += scene.observer.one(TERMINATE) or 0
    return Hits(ended, "sessions", jobs=jobs)


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


@fault("table jobs locked for longer than a lease", explains=AWAY)
def lock_jobs(scene: Scene) -> Hits:
    """No claim, no completion and no heartbeat gets through; nobody is dead for that."""
    # A restart meanwhile, in a pair, ends the lock early.
    with suppress(psycopg.OperationalError), psycopg.connect(scene.stage.servers.postgres.url(scene.stage.name)) as db:
        db.execute("LOCK TABLE pipeline.jobs IN ACCESS EXCLUSIVE MODE")
        scene.pause(LEASE + 3, LEASE + 6)
    return Hits(1, "lock")


def _restart(scene: Scene, mode: Literal["fast", "immediate"]) -> Hits:
    jobs = long_jobs(scene, 6, 12)
    with scene.stage.postgres_lock:
        scene.pause(0.2, 1.5)
        scene.stage.servers.postgres.restart(mode)
    return Hits(1, "restart", jobs=jobs)
