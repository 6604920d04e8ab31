"""The ways from the workers to the servers: a proxy for each worker and server, so that one can be cut off alone."""

from __future__ import annotations

from contextlib import ExitStack

from chaos.proxy import Proxy
from pipeline.dev.services.ports import LOOPBACK

POSTGRES, RABBITMQ, MANAGEMENT = "DATABASE_URL", "RABBITMQ_URL", "RABBITMQ_MANAGEMENT_URL"


class Routes:
    """Proxies are made when a worker first goes through them, and live as long as the run."""

    def __init__(self, stack: ExitStack, workers: int) -> None:
        self._stack = stack
        self._proxies: dict[tuple[str, int], Proxy] = {}
        # Its network to both servers is bad, if one is.
        self.unlucky = workers

    def through(self, number: int, environment: dict[str, str]) -> dict[str, str]:
        """The settings of one worker, with its own proxies in place of the servers."""
        names = [name for name in (POSTGRES, RABBITMQ, MANAGEMENT) if name in environment]
        return {**environment, **{name: self._detour(name, number, environment[name]) for name in names}}

    def proxy(self, name: str, number: int) -> Proxy:
        """Between this worker and this server."""
        return self._proxies[name, number]

    def all_of(self, name: str) -> list[Proxy]:
        """Between every worker and this server."""
        return [proxy for (server, _), proxy in self._proxies.items() if server == name]

    def _detour(self, name: str, number: int, url: str) -> str:
        port = port_of(url)
        if (name, number) not in self._proxies:
            self._proxies[name, number] = self._stack.enter_context(Proxy(port))
        return url.replace(f"{LOOPBACK}:{port}", f"{LOOPBACK}:{self._proxies[name, number].port}")


def port_of(url: str) -> int:
    """The server's port in a setting."""
    return int(url.rpartition("@")[2].partition("/")[0].rpartition(":")[2])
