"""Faults of the broker."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from pika.exceptions import AMQPError

from chaos.fault import Hits, Scene, fault
from chaos.observer import until
from chaos.work import BEGUN, all_threads
from pipeline.dev.services.ports import answers
from pipeline.dev.services.rabbitmq import AMQP_GREETING
from pipeline.dev.services.rabbitmq_node import VHOST, control_script, node_environment
from pipeline.dev.services.state import State


def no_control() -> str | None:
    """Why the broker cannot be told anything, or nothing."""
    return None if Path(control := control_script()).exists() else f"{control} is not there"


@fault("RabbitMQ SIGKILL, restart")
def kill_broker(scene: Scene) -> Hits:
    """Its data stay."""
    return _restart(scene, scene.stage.servers.rabbitmq.kill)


@fault("RabbitMQ data wiped", load="deep")
def wipe_broker(scene: Scene) -> Hits:
    """Queues and messages are gone; users and vhosts come back with the definitions."""
    rabbitmq = scene.stage.servers.rabbitmq

    def lose() -> None:
        rabbitmq.kill()
        rabbitmq.wipe()

    return _restart(scene, lose)


@fault("queue purge", explains=["released"], load="deep")
def purge(scene: Scene) -> Hits:
    """Whatever waits in the queues while all workers are being replaced.

    Pools keep the queues so short that otherwise every message is in a worker's hands, where no purge finds it.
    """
    if not scene.alone:  # the other fault needs its workers
        return Hits(_purge_often(scene), "messages")
    done = Hits(unit="messages")
    for _ in range(3):
        done.jobs += all_threads(scene, 4)
        until(lambda: scene.observer.one(BEGUN, done.jobs, 1) >= len(done.jobs) // 2, 60, "every thread to have work")
        with scene.stage.resting():
            done.hits += _purge(scene)
        scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)
        if done.hits or not done.jobs:
            break
    done.complaints += (
        [] if done.hits or not done.jobs else ["no message ever waited in a queue: the fault hit nothing"]
    )
    return done


@fault("connections closed by an operator")
def close_connections(scene: Scene) -> Hits:
    """Through the management API."""
    closed = 0
    for _ in range(2):
        closed += close_all(scene)
        scene.pause(0.5, 1.5)
    return Hits(closed, "connections")


def close_all(scene: Scene) -> int:
    """Every connection once; returns when all workers consume again."""
    closed = int(until(lambda: _close(scene), 60, "connections to close"))
    until(lambda: scene.stage.consumers() >= scene.stage.crew.size, 60, "all consumers to be back")
    return closed


@fault("RabbitMQ memory alarm", impossible=no_control)
def memory_alarm(scene: Scene) -> Hits:
    """Publishers are blocked; acknowledgements are not."""
    return _alarm(
        scene, ["set_vm_memory_high_watermark", "absolute", "1MB"], ["set_vm_memory_high_watermark", "absolute", "2GB"]
    )


@fault("RabbitMQ disk alarm", impossible=no_control)
def disk_alarm(scene: Scene) -> Hits:
    """As if the disk were full."""
    return _alarm(scene, ["set_disk_free_limit", "100000GB"], ["set_disk_free_limit", "50MB"])


def _restart(scene: Scene, stop: Callable[[], None]) -> Hits:
    stage = scene.stage
    with stage.rabbitmq_lock:
        scene.pause(0.2, 1.5)
        stop()
        scene.pause(0.0, 1.0)
        with _measured_return(scene) as back:
            stage.servers.rabbitmq.start()
            if stage.name != VHOST:
                stage.servers.rabbitmq.create_vhost(stage.name)
    return Hits(1, "restart", consumers_back=back)


@contextmanager
def _measured_return(scene: Scene) -> Iterator[list[float]]:
    """Seconds from the broker's first answer until every worker consumes again."""
    stage, back = scene.stage, list[float]()
    port = int(stage.servers.rabbitmq.url().rpartition(":")[2].partition("/")[0])

    def watch() -> None:
        until(lambda: answers(port, AMQP_GREETING), 120, "the broker to answer", pause=0.1)
        answered = time.monotonic()
        until(lambda: stage.consumers() >= stage.crew.size, 120, "all consumers to be back", pause=0.1)
        back.append(round(time.monotonic() - answered, 2))

    watcher = threading.Thread(target=watch, name="consumers", daemon=True)
    watcher.start()
    yield back
    watcher.join()


def _purge_often(scene: Scene) -> int:
    purged = 0
    for _ in range(10):
        scene.pause(0.2, 0.6)
        purged += _purge(scene)
    return purged


def _purge(scene: Scene) -> int:
    with scene.stage.rabbitmq_lock:
        try:
            channel = scene.stage.channel()
            found = [channel.queue_purge(queue).method.message_count for queue in scene.stage.queues()]
            channel.connection.close()
        except (AMQPError, OSError):
            return 0
    return sum(int(count or 0) for count in found)


def _close(scene: Scene) -> int:
    with scene.stage.rabbitmq_lock:
        try:
            return scene.stage.servers.rabbitmq.close_connections(scene.stage.name)
        except httpx.HTTPError:
            return 0


def _alarm(scene: Scene, on: list[str], off: list[str]) -> Hits:
    with scene.stage.rabbitmq_lock, ExitStack() as stack:
        stack.callback(control, scene, off)
        control(scene, on)
        scene.pause(4, 8)
    return Hits(1, "alarm")


def control(scene: Scene, command: list[str]) -> None:
    """rabbitmqctl at the run's own node."""
    folder = Path(scene.stage.servers.rabbitmq._folder)
    recorded = State(folder, "rabbitmq").read()
    environment = node_environment(folder / "rabbitmq", recorded)
    subprocess.run(
        [control_script(), "-n", recorded["node"], *command],
        env=environment,
        check=True,
        capture_output=True,
        timeout=60,
    )
