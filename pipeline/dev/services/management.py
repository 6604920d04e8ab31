"""The few calls to RabbitMQ's management HTTP API that running and testing a private broker needs."""

import time
from typing import Any
from urllib.parse import quote

from pipeline.broker.counts import TOTALS
from pipeline.broker.management import UNANSWERED, Login, request
from pipeline.dev.services.processes import ServiceError

CLOSE_SECONDS = 15
NOT_FOUND = 404


class Management:
    """The API of one broker. Each call has a connection of its own, so that a broker that restarted is no surprise."""

    def __init__(self, url: str, login: Login) -> None:
        self._url = url
        self._login = login

    def has_vhost(self, vhost: str) -> bool:
        """True if the API answers and the vhost is up; False while the broker is starting."""
        try:
            answer = request(self._url, self._login, f"vhosts/{_quoted(vhost)}")
        except UNANSWERED:
            return False
        return answer.well and "running" in answer.body.get("cluster_state", {}).values()

    def create_vhost(self, vhost: str, users: list[str], policies: list[dict[str, Any]]) -> None:
        """Create the vhost with full permissions for these users and these policies; one that exists is kept."""
        self._put(f"vhosts/{_quoted(vhost)}", {})
        for user in users:
            everything = {"configure": ".*", "write": ".*", "read": ".*"}
            self._put(f"permissions/{_quoted(vhost)}/{_quoted(user)}", everything)
        for policy in policies:
            body = {key: policy[key] for key in ("pattern", "definition", "priority", "apply-to")}
            self._put(f"policies/{_quoted(vhost)}/{_quoted(policy['name'])}", body)

    def delete_vhost(self, vhost: str) -> None:
        """Delete the vhost, its queues and its connections; one that does not exist is fine."""
        self._delete(f"vhosts/{_quoted(vhost)}")

    def queue_counts(self, vhost: str) -> dict[str, tuple[int, int]]:
        """Messages ready and unacknowledged of every queue, about a second old."""
        return {
            queue["name"]: (queue.get("messages_ready", 0), queue.get("messages_unacknowledged", 0))
            for queue in self.queues(vhost)
        }

    def queues(self, vhost: str) -> list[dict[str, Any]]:
        """What RabbitMQ says of each queue: its name, type, arguments and totals."""
        found: list[dict[str, Any]] = self._call(f"queues/{_quoted(vhost)}?{TOTALS}")
        return found

    def close_connections(self, vhost: str) -> int:
        """Close every AMQP connection that the vhost has now, as an operator would; returns how many."""
        names = self._connections(vhost)
        deadline = time.monotonic() + CLOSE_SECONDS
        # The API can close a connection only once its statistics know it, about a second after it opened.
        while (left := names & self._connections(vhost)) and time.monotonic() < deadline:
            for name in left:
                self._delete(f"connections/{_quoted(name)}")
            time.sleep(0.05)
        return len(names)

    def _connections(self, vhost: str) -> set[str]:
        # Without statistics it comes from the broker's own register, which is never late.
        found = self._call("connections?disable_stats=true")
        return {connection["name"] for connection in found if connection["vhost"] == vhost}

    def _put(self, path: str, body: dict[str, Any]) -> None:
        self._call(path, "PUT", body)

    def _delete(self, path: str) -> None:
        self._call(path, "DELETE", missing=True)

    def _call(self, path: str, method: str = "GET", body: object = None, *, missing: bool = False) -> Any:
        answer = request(self._url, self._login, path, method, body)
        if not answer.well and not (missing and answer.status == NOT_FOUND):
            raise ServiceError(f"RabbitMQ's management API answered {answer.status} to {method} {path}.")
        return answer.body


def _quoted(name: str) -> str:
    return quote(name, safe="")
