"""A network of a worker's own, joined to the servers by a cable on which packets can be lost without a word.

A proxy can only close connections or keep them waiting. Here the two ends are told a wrong hardware address of each
other: packets leave, and nobody takes them. Neither end gets a reset, as when a host dies or a firewall drops.
The cable carries nothing but what is between this worker and the run's own servers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

NOBODY = "02:00:00:00:00:fe"


def cannot_make() -> str | None:
    """Why there can be none on this machine, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "ip (iproute2) is not installed"
    tried = _ip("netns", "add", name := f"chaos-try-{os.getpid()}", check=False)
    if tried.returncode:
        return f"no network namespace: {tried.stderr.strip()[:80]}"
    _ip("netns", "del", name)
    return None


class Namespace:
    """Each end has two addresses, one for each server, so that one server alone can fall silent.

    The range is set aside for tests of networks (RFC 2544): nobody routes it.
    """

    def __init__(self) -> None:
        number = os.getpid() % 64 * 4
        self.name, self._here, self._there = f"chaos-{os.getpid()}", f"cha{os.getpid()}", f"chb{os.getpid()}"
        self.postgres, self.rabbitmq = f"198.18.0.{number}", f"198.18.0.{number + 1}"
        self._to_postgres, self._to_rabbitmq = f"198.18.1.{number}", f"198.18.1.{number + 1}"

    @property
    def command(self) -> list[str]:
        """What runs a program in it."""
        return ["ip", "netns", "exec", self.name]

    @contextmanager
    def made(self) -> Iterator[None]:
        """For a while; nothing of it is left."""
        with ExitStack() as stack:
            _ip("netns", "add", self.name)
            stack.callback(_ip, "netns", "del", self.name, check=False)
            _ip("link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", self.name)
            stack.callback(_ip, "link", "del", self._here, check=False)
            for address in (self.postgres, self.rabbitmq):
                _ip("address", "add", f"{address}/32", "dev", self._here)
            _ip("link", "set", self._here, "up")
            for device in ("lo", self._there):
                _ip("-n", self.name, "link", "set", device, "up")
            for here, there in self._pairs():
                _ip("-n", self.name, "address", "add", f"{there}/32", "dev", self._there)
                _ip("-n", self.name, "route", "add", f"{here}/32", "dev", self._there, "src", there)
                _ip("route", "add", f"{there}/32", "dev", self._here, "src", here)
            yield

    @contextmanager
    def postgres_silent(self) -> Iterator[None]:
        """Packets between the worker and PostgreSQL are lost, both ways."""
        wrong = ("lladdr", NOBODY, "nud", "permanent")
        _ip("-n", self.name, "neigh", "replace", self.postgres, "dev", self._there, *wrong)
        _ip("neigh", "replace", self._to_postgres, "dev", self._here, *wrong)
        try:
            yield
        finally:
            _ip("-n", self.name, "neigh", "del", self.postgres, "dev", self._there, check=False)
            _ip("neigh", "del", self._to_postgres, "dev", self._here, check=False)

    def _pairs(self) -> list[tuple[str, str]]:
        return [(self.postgres, self._to_postgres), (self.rabbitmq, self._to_rabbitmq)]


def _ip(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check, timeout=20)
