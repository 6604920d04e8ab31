"""The few calls to RabbitMQ's management HTTP API that running and testing a private broker needs."""

import time
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

CLOSE_SECONDS = 15


class Login(NamedTuple):
    """A user of the broker."""

    name: str
    password: str


class Management:
    """The API of one broker. Each call has a connection of its own, so that a broker that restarted is no surprise."""

    def __init__(self, url: str, login: Login) -> None:
        self._client = httpx.Client(
            base_url=f"{url}/api/",
            auth=(login.name, login.password),
            timeout=10,
            verify=False,  # noqa: S501 - plain http on the loopback address; loading certificates costs more than a call
            trust_env=False,  # a proxy must not see it
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def has_vhost(self, vhost: str) -> bool:
        """True if the API answers and the vhost is up; False while the broker is starting."""
        try:
            response = self._client.get(f"vhosts/{_quoted(vhost)}")
        except httpx.TransportError:
            return False
        return response.is_success and "running" in response.json().get("cluster_state", {}).values()

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
        # Without statistics the totals come from the queues' own counters, not from five-second samples.
        options = {"disable_stats": "true", "enable_queue_totals": "true"}
        response = self._client.get(f"queues/{_quoted(vhost)}", params=options).raise_for_status()
        return {
            queue["name"]: (queue.get("messages_ready", 0), queue.get("messages_unacknowledged", 0))
            for queue in response.json()
        }

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
        options = {"disable_stats": "true"}  # from the broker's own register, which is never late
        response = self._client.get("connections", params=options).raise_for_status()
        return {connection["name"] for connection in response.json() if connection["vhost"] == vhost}

    def _put(self, path: str, body: dict[str, Any]) -> None:
        self._client.put(path, json=body).raise_for_status()

    def _delete(self, path: str) -> None:
        response = self._client.delete(path)
        if response.status_code != httpx.codes.NOT_FOUND:
            response.raise_for_status()


def _quoted(name: str) -> str:
    return quote(name, safe="")
