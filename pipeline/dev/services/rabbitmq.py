"""A private RabbitMQ node with the management plugin."""

import shutil
import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline.broker.management import Login
from pipeline.dev.services import processes
from pipeline.dev.services.management import Management
from pipeline.dev.services.ports import LOOPBACK, answers, free_port
from pipeline.dev.services.processes import ServiceError
from pipeline.dev.services.rabbitmq_node import (
    VHOST,
    epmd_program,
    node_environment,
    policies,
    prepare_node,
    server_script,
)
from pipeline.dev.services.readiness import wait_until
from pipeline.dev.services.state import State

START_SECONDS = 120
AMQP_GREETING = b"AMQP\x00\x00\x09\x01"


class RabbitMQ:
    """One node; users, vhost and policies come from the definitions at every start, durable messages from its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._state = State(self._folder, "rabbitmq")
        self._log = self._folder / "rabbitmq.log"

    @property
    def running(self) -> bool:
        """True while the node that this folder recorded is alive."""
        return processes.alive(self._state.process())

    @property
    def pids(self) -> list[int]:
        """The node's processes, its port mapper included."""
        node, epmd = self._state.process(), self._state.process("epmd")
        return [p.pid for p in (node, epmd, *processes.descendants(node)) if p and processes.alive(p)]

    @property
    def management_url(self) -> str:
        """The address of the management UI and API, without credentials."""
        return f"http://{LOOPBACK}:{self._recorded('management_port')}"

    @property
    def management_user(self) -> Login:
        """Who signs in there."""
        return Login("operator", self._recorded("passwords")["operator"])

    def url(self, vhost: str = VHOST) -> str:
        """Where to connect; the same for as long as nobody else takes the port while the node is down."""
        address = f"{LOOPBACK}:{self._recorded('amqp_port')}"
        return f"amqp://pipeline:{self._recorded('passwords')['pipeline']}@{address}/{quote(vhost, safe='')}"

    def start(self) -> None:
        """Return when AMQP and the management API answer and the vhost is up; at once when it runs already."""
        if self.running:
            return
        home = prepare_node(self._folder, self._state)
        self._start_epmd()
        environment = node_environment(home, self._state.read())
        process = processes.spawn([server_script()], self._log, environment, None)
        self._state.update(process=process)
        try:
            wait_until(self._ready, process, self._log, "RabbitMQ", START_SECONDS)
        except BaseException:
            self.kill()
            self._stop_epmd()
            raise

    def stop(self) -> None:
        """Return when the node has closed its queues and is gone, with its port mapper."""
        self._end(signal.SIGTERM, grace=60)
        self._stop_epmd()

    def kill(self) -> None:
        """End the node with SIGKILL, as if the machine had died."""
        self._end(signal.SIGKILL, grace=10)

    def wipe(self) -> None:
        """Lose every queue and message; the next start brings back users, vhost and policies from the definitions."""
        if self.running:
            raise ServiceError(f"RabbitMQ in {self._folder} is running: stop it before you delete its data.")
        shutil.rmtree(self._folder / "rabbitmq" / "data", ignore_errors=True)

    def remove(self) -> None:
        """Delete everything this node ever wrote; it must be stopped."""
        self.wipe()
        shutil.rmtree(self._folder / "rabbitmq", ignore_errors=True)
        self._log.unlink(missing_ok=True)
        self._state.forget()

    def create_vhost(self, name: str) -> None:
        """Create a vhost with the same users and policies as `pipeline`; one that exists is kept."""
        self._management().create_vhost(name, ["pipeline", "operator", "owner"], policies())

    def delete_vhost(self, name: str) -> None:
        """Delete a vhost with its queues and connections; one that does not exist is fine."""
        self._management().delete_vhost(name)

    def queue_counts(self, vhost: str = VHOST) -> dict[str, tuple[int, int]]:
        """Messages (ready, unacknowledged) of every queue, about a second old."""
        return self._management().queue_counts(vhost)

    def queues(self, vhost: str = VHOST) -> list[dict[str, Any]]:
        """Name, type, arguments and totals of every queue."""
        return self._management().queues(vhost)

    def close_connections(self, vhost: str = VHOST) -> int:
        """Close every AMQP connection to the vhost, as an operator would; returns how many."""
        return self._management().close_connections(vhost)

    def _management(self) -> Management:
        return Management(self.management_url, Login("owner", self._recorded("passwords")["owner"]))

    def _start_epmd(self) -> None:
        """Start our own port mapper, so that the node does not start one whose pid nobody knows."""
        if processes.alive(self._state.process("epmd")):
            return
        port = free_port(self._state.read()["epmd_port"])
        command = [epmd_program(), "-address", LOOPBACK, "-port", str(port)]
        epmd = processes.spawn(command, self._log, {"HOME": str(self._folder)}, None)
        self._state.update(epmd=epmd, epmd_port=port)
        wait_until(lambda: answers(port), epmd, self._log, "Erlang's epmd", 10)

    def _stop_epmd(self) -> None:
        processes.send(self._state.process("epmd"), signal.SIGTERM)
        processes.wait_gone(self._state.process("epmd"), 10)

    def _end(self, number: signal.Signals, grace: float) -> None:
        """Signal the node and wait; its helper processes end with it, or are ended."""
        node = self._state.process()
        helpers = processes.descendants(node)
        processes.send(node, number)
        processes.end_all([node] if node else [], grace)
        processes.end_all(helpers, grace=5)

    def _ready(self) -> bool:
        amqp_port = self._recorded("amqp_port")
        return answers(amqp_port, AMQP_GREETING) and self._management().has_vhost(VHOST)

    def _recorded(self, name: str) -> Any:
        state = self._state.read()
        if name not in state:
            raise ServiceError(f"No private RabbitMQ was ever started in {self._folder}: start it first.")
        return state[name]
