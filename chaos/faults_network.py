"""Faults of the network between one worker and a server, and of its clock."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from chaos.crew import COMMAND
from chaos.fault import Hits, Scene, fault
from chaos.observer import until
from chaos.proxy import Mode

# Without PostgreSQL a worker's lease runs out, or its lock is free: others take its jobs.
WITHOUT_POSTGRES = ["parked", "stale", "crashed"]
# What Python reads first in a worker whose clock is ahead.
AHEAD = Path(__file__).parent / "ahead"


def _bad_network(scene: Scene, server: str, modes: list[Mode]) -> Hits:
    hit = 0
    for mode in modes:
        scene.pause(0.2, 1.0)
        with scene.stage.proxies[server].behaving(mode) as connections:
            hit += connections
            scene.pause(6, 14)
    return Hits(hit, "connections")


@fault("PostgreSQL unreachable for one worker", explains=WITHOUT_POSTGRES)
def cut_postgres(scene: Scene) -> Hits:
    """Reset and refused."""
    return _bad_network(scene, "postgres", ["cut"])


@fault("PostgreSQL half-open for one worker", explains=WITHOUT_POSTGRES)
def half_open_postgres(scene: Scene) -> Hits:
    """The server saw the connections end, the worker did not."""
    return _bad_network(scene, "postgres", ["half_open"])


@fault("PostgreSQL one direction only for one worker", explains=WITHOUT_POSTGRES)
def hold_postgres(scene: Scene) -> Hits:
    """Questions arrive and answers do not, then the other way round."""
    return _bad_network(scene, "postgres", ["hold_down", "hold_up"])


@fault("PostgreSQL 0.3 s away for one worker", explains=WITHOUT_POSTGRES)
def delay_postgres(scene: Scene) -> Hits:
    """Every piece comes late."""
    return _bad_network(scene, "postgres", ["delay"])


@fault("RabbitMQ unreachable for one worker")
def cut_rabbitmq(scene: Scene) -> Hits:
    """Reset and refused; the worker keeps its jobs."""
    return _bad_network(scene, "rabbitmq", ["cut"])


@fault("RabbitMQ half-open for one worker")
def half_open_rabbitmq(scene: Scene) -> Hits:
    """The server saw the connections end, the worker did not."""
    return _bad_network(scene, "rabbitmq", ["half_open"])


@fault("RabbitMQ one direction only for one worker")
def hold_rabbitmq(scene: Scene) -> Hits:
    """Messages come and answers do not arrive, then the other way round."""
    return _bad_network(scene, "rabbitmq", ["hold_down", "hold_up"])


@fault("RabbitMQ 0.3 s away for one worker")
def delay_rabbitmq(scene: Scene) -> Hits:
    """Every piece comes late."""
    return _bad_network(scene, "rabbitmq", ["delay"])


def _no_faketime() -> str | None:
    return None if shutil.which("faketime") else "faketime is not installed"


@fault("clock of one worker 10 minutes off", explains=["handed_back"], impossible=_no_faketime)
def wrong_clock(scene: Scene) -> Hits:
    """Times come from PostgreSQL, so that a worker's own clock has no say: one more worker, ahead of its time."""
    crew = scene.stage.crew
    # The time of day is off; seconds are as long as ever.
    environment = {**os.environ, **scene.stage.environment(), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(AHEAD), environment.get("PYTHONPATH")]))
    before = len(crew.living(scene.observer))
    with crew.guest_log.open("ab") as log:
        worker = subprocess.Popen(["faketime", "-f", "+600s", *COMMAND], env=environment,
                                  stdout=log, stderr=log, start_new_session=True)  # fmt: skip
    try:
        crew.at_least(scene.observer, before + 1)
        scene.pause(6, 10)
    finally:
        # faketime stands above the worker and would die alone.
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait()
        until(lambda: not _group_lives(worker.pid), 60, "the guest to leave")
    return Hits(1, "worker")


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
