"""Packets that are lost without a word, between one worker and PostgreSQL."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from chaos.fault import Hits, Scene, fault, now
from chaos.guest import NAME, guest
from chaos.namespace import Namespace, cannot_make
from chaos.observer import Deadline, until
from chaos.proxy import Proxy
from chaos.reconcile import Absence
from chaos.routes import MANAGEMENT, POSTGRES, RABBITMQ, port_of
from chaos.stage import Stage
from chaos.work import long_jobs
from pipeline.dev.services import postgres
from pipeline.dev.services.ports import LOOPBACK

# Keep-alives notice a silent connection after 25 s; one that waits for an answer must not take longer.
SILENT = 45.0
ESTABLISHED = "01"
HELD = "SELECT count(*) FROM pipeline.jobs WHERE status = 'running' AND locked_by LIKE %s"
WORKED = """SELECT count(*) FROM pipeline.attempts
    WHERE worker_no IN (SELECT no FROM pipeline.workers WHERE id LIKE %s) AND started_at > %s"""
ALLOWED = "\nhost all all 198.18.1.0/24 scram-sha-256\n"


@contextmanager
def on_a_cable(stage: Stage) -> Iterator[Stage]:
    """The run's own servers, of which PostgreSQL also listens at one end of a cable."""
    namespace = Namespace()
    with namespace.made():
        _listen(stage, f"{LOOPBACK},{namespace.postgres}")
        stage.namespace = namespace
        try:
            yield stage
        finally:
            stage.namespace = None
            _listen(stage, LOOPBACK)


@fault(
    "packets to PostgreSQL dropped for one worker", explains=["snoozed"], impossible=cannot_make, elsewhere=on_a_cable
)
def drop(scene: Scene) -> Hits:
    """No reset comes: it must notice by itself, lose its jobs at most, and work again afterwards."""
    namespace = scene.stage.namespace
    assert namespace is not None
    done = Hits(unit="connections")
    with ExitStack() as stack:
        stack.enter_context(guest(scene, _addresses(scene, namespace, stack), before=namespace.command))
        done.jobs = long_jobs(scene, 8, 8)
        until(lambda: scene.observer.one(HELD, f"{NAME}-%"), 30, "the guest to have a job")
        since, done.hits = now(), _connections(namespace)
        with namespace.postgres_silent():
            scene.pause(SILENT, SILENT)
            if hanging := _connections(namespace):
                done.complaints.append(f"{hanging} connections still hang after {SILENT:g} s without an answer")
        done.absences.append(Absence("cut off", f"{NAME}-", since, now()))
        _expect_work(scene, done)
    return done


def _addresses(scene: Scene, namespace: Namespace, stack: ExitStack) -> dict[str, str]:
    """PostgreSQL itself, and RabbitMQ through a proxy: its connections are well all the time."""
    found, settings = {}, scene.stage.environment()
    port = port_of(settings[POSTGRES])
    found[POSTGRES] = settings[POSTGRES].replace(f"{LOOPBACK}:{port}", f"{namespace.postgres}:{port}")
    for name in (RABBITMQ, MANAGEMENT):
        if name in settings:
            port = port_of(settings[name])
            proxy = stack.enter_context(Proxy(port, namespace.rabbitmq))
            found[name] = settings[name].replace(f"{LOOPBACK}:{port}", f"{namespace.rabbitmq}:{proxy.port}")
    return found


def _connections(namespace: Namespace) -> int:
    """Of the worker to PostgreSQL, as its own side sees them."""
    command = [*namespace.command, "cat", "/proc/net/tcp"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()[1:]
    wanted = socket.inet_aton(namespace.postgres)[::-1].hex().upper()
    ends = [line.split() for line in lines]
    return sum(remote.startswith(wanted) and state == ESTABLISHED for _, _, remote, state, *_ in ends)


def _expect_work(scene: Scene, done: Hits) -> None:
    moment = now()
    try:
        until(lambda: scene.observer.one(WORKED, f"{NAME}-%", moment), 60, "the worker to work again", pause=0.2)
    except Deadline as late:
        done.complaints.append(str(late))


def _listen(stage: Stage, addresses: str) -> None:
    """While nobody works: PostgreSQL takes new addresses only at a start."""
    with stage.resting(), stage.postgres_lock:
        postgres.SETTINGS["listen_addresses"] = addresses
        rules = Path(stage.servers.postgres._state.read()["place"]) / "data" / "pg_hba.conf"
        if ALLOWED not in rules.read_text():
            rules.write_text(rules.read_text() + ALLOWED)
        stage.servers.postgres.restart("fast")
