"""Faults of the network between one worker and a server, and of its clock."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from chaos.fault import Hits, Scene, fault, now
from chaos.guest import guest
from chaos.proxy import Mode
from chaos.reconcile import Absence
from chaos.routes import POSTGRES, RABBITMQ

# What Python reads first in a worker whose clock is ahead.
AHEAD = Path(__file__).parent / "ahead"


def _bad_network(scene: Scene, server: str, modes: list[Mode]) -> Hits:
    """For the crew's last worker. Without PostgreSQL its lock is free: others may take its jobs, and only its."""
    done, unlucky = Hits(unit="connections"), scene.stage.routes.unlucky
    for mode in modes:
        scene.pause(0.2, 1.0)
        since = now()
        with scene.stage.routes.proxy(server, unlucky).behaving(mode) as connections:
            done.hits += connections
            scene.pause(6, 14)
        if server == POSTGRES and mode != "delay":
            done.absences.append(Absence("cut off", f"chaos-{unlucky}-", since, now()))
    return done


@fault("PostgreSQL unreachable for one worker", explains=["snoozed"], proxied=True)
def cut_postgres(scene: Scene) -> Hits:
    """Reset and refused."""
    return _bad_network(scene, POSTGRES, ["cut"])


@fault("PostgreSQL half-open for one worker", explains=["snoozed"], proxied=True)
def half_open_postgres(scene: Scene) -> Hits:
    """The server saw the connections end, the worker did not."""
    return _bad_network(scene, POSTGRES, ["half_open"])


@fault("PostgreSQL one direction only for one worker", explains=["snoozed"], proxied=True)
def hold_postgres(scene: Scene) -> Hits:
    """Questions arrive and answers do not, then the other way round."""
    return _bad_network(scene, POSTGRES, ["hold_down", "hold_up"])


@fault("PostgreSQL 0.3 s away for one worker", explains=["snoozed"], proxied=True)
def delay_postgres(scene: Scene) -> Hits:
    """Every piece comes late."""
    return _bad_network(scene, POSTGRES, ["delay"])


@fault("RabbitMQ unreachable for one worker", proxied=True)
def cut_rabbitmq(scene: Scene) -> Hits:
    """Reset and refused; the worker keeps its jobs."""
    return _bad_network(scene, RABBITMQ, ["cut"])


@fault("RabbitMQ half-open for one worker", proxied=True)
def half_open_rabbitmq(scene: Scene) -> Hits:
    """The server saw the connections end, the worker did not."""
    return _bad_network(scene, RABBITMQ, ["half_open"])


@fault("RabbitMQ one direction only for one worker", proxied=True)
def hold_rabbitmq(scene: Scene) -> Hits:
    """Messages come and answers do not arrive, then the other way round."""
    return _bad_network(scene, RABBITMQ, ["hold_down", "hold_up"])


@fault("RabbitMQ 0.3 s away for one worker", proxied=True)
def delay_rabbitmq(scene: Scene) -> Hits:
    """Every piece comes late."""
    return _bad_network(scene, RABBITMQ, ["delay"])


def _no_faketime() -> str | None:
    return None if shutil.which("faketime") else "faketime is not installed"


@fault("clock of one worker 10 minutes off", explains=["released"], impossible=_no_faketime)
def wrong_clock(scene: Scene) -> Hits:
    """Times come from PostgreSQL, so that a worker's own clock has no say: one more worker, ahead of its time."""
    # The time of day is off; seconds are as long as ever.
    path = os.pathsep.join([str(AHEAD), scene.stage.environment()["PYTHONPATH"]])
    extra = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "PYTHONPATH": path}
    with guest(scene, extra, before=["faketime", "-f", "+600s"]):
        scene.pause(6, 10)
    return Hits(1, "worker")
