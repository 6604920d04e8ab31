"""Free ports of 127.0.0.1 that stay free while their server is down."""

import secrets
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"


def free_port(preferred: int | None = None) -> int:
    """`preferred` if nobody listens there, otherwise a random port below the range that the kernel hands to clients.

    A port from the kernel's own range could be taken by any outgoing connection while the server restarts.
    """
    if preferred is not None and is_free(preferred):
        return preferred
    while not is_free(port := 12_000 + secrets.randbelow(_highest() - 12_000)):
        pass
    return port


def is_free(port: int) -> bool:
    """True if a server could listen on this port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def answers(port: int, greeting: bytes = b"") -> bool:
    """True if a server accepts connections on the port and, if greeted, says something back."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2) as connection:
            connection.sendall(greeting)
            return not greeting or bool(connection.recv(1))
    except OSError:
        return False


def _highest() -> int:
    try:
        lowest_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest_ephemeral = 32_768
    return max(lowest_ephemeral - 1, 20_000)
