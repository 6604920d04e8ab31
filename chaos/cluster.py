"""Three RabbitMQ nodes that form a cluster, for quorum queues."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from pipeline.dev.services import RabbitMQ
from pipeline.dev.services.processes import ServiceError
from pipeline.dev.services.rabbitmq_node import VHOST
from pipeline.dev.services.state import State, make_folder

SIZE = 3
# Nobody else has these, so that the nodes of two runs never meet.
SHARED = ("passwords", "epmd", "epmd_port")


class Cluster:
    """The first node stands alone; the others join it. They share its port mapper, its cookie and its users."""

    def __init__(self, folder: Path) -> None:
        self._folders = [folder / f"node-{n}" for n in range(1, SIZE + 1)]
        self.nodes = [RabbitMQ(place) for place in self._folders]

    def start(self) -> None:
        """Return when all nodes run and know each other."""
        self.nodes[0].start()
        for place in self._folders[1:]:
            self._introduce(place)
        with ThreadPoolExecutor() as pool:
            list(pool.map(RabbitMQ.start, self.nodes[1:]))
        if len(found := self.names()) != SIZE:
            raise ServiceError(f"the nodes did not become a cluster: {found}")

    def remove(self) -> None:
        """End the nodes and delete what they wrote."""
        for node in self.nodes:
            node.kill()
        self.nodes[0].stop()  # and with it the port mapper
        for node in self.nodes:
            node.remove()

    def urls(self, first: int = 0) -> str:
        """The addresses of all nodes, as the workers take them; ``first`` is the one that is tried first."""
        order = self.nodes[first:] + self.nodes[:first]
        return ";".join(node.url() for node in order)

    def living(self) -> RabbitMQ:
        """A node that can be asked."""
        return next(node for node in self.nodes if node.running)

    def names(self) -> list[str]:
        """The nodes that the cluster says are running."""
        return [node["name"] for node in self._ask("nodes") if node["running"]]

    def place_of(self, queue: str) -> tuple[RabbitMQ | None, list[RabbitMQ]]:
        """The node that leads the queue, if there is one, and those that follow."""
        found = self._ask(f"queues/{VHOST}/{quote(queue, safe='')}")
        online = [self._node(name) for name in found.get("online", [])]
        leader = self._node(found["leader"]) if found.get("leader") in found.get("online", []) else None
        return leader, [node for node in online if node is not leader]

    def _node(self, name: str) -> RabbitMQ:
        return next(node for node, place in zip(self.nodes, self._folders, strict=True) if _read(place)["node"] == name)

    def _introduce(self, place: Path) -> None:
        """Everything that the node must have before its first start."""
        first = _read(self._folders[0])
        node = f"pipeline-{secrets.token_hex(4)}@localhost"
        make_folder(place)
        State(place, "rabbitmq").update(node=node, **{key: first[key] for key in SHARED})
        (home := place / "rabbitmq").mkdir(mode=0o700)
        (home / "conf.d").mkdir()
        (home / "conf.d" / "cluster.conf").write_text(
            "cluster_formation.peer_discovery_backend = classic_config\n"
            f"cluster_formation.classic_config.nodes.1 = {first['node']}\n"
            f"cluster_formation.classic_config.nodes.2 = {node}\n"
        )
        cookie = home / ".erlang.cookie"
        cookie.write_text((self._folders[0] / "rabbitmq" / ".erlang.cookie").read_text())
        cookie.chmod(0o400)

    def _ask(self, path: str) -> Any:
        node, login = self.living(), self.living().management_user
        answer = httpx.get(
            f"{node.management_url}/api/{path}", auth=(login.name, login.password), timeout=10, trust_env=False
        )
        return answer.raise_for_status().json()


def _read(place: Path) -> dict[str, Any]:
    return State(place, "rabbitmq").read()
