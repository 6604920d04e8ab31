"""Ways to be stuck: calls that do not return to bytecode, so that no exception of another thread is raised in them."""

from __future__ import annotations

import ctypes
import socket
import time
from collections.abc import Callable

# What a thread must not ask of usleep at once.
SECOND = 1_000_000


def in_sleep(seconds: float) -> None:
    time.sleep(seconds)


def in_socket(seconds: float) -> None:
    """A peer that never says anything."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(None)
        # The kernel's own timeout: Python waits in recv itself, and not in a loop of its own.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds.__ceil__().to_bytes(8, "little") + bytes(8))
        try:
            ours.recv(1)
        except BlockingIOError:
            return


def in_c(seconds: float) -> None:
    """A library's function that takes its time, as a codec or an OCR engine would; the GIL is released."""
    ctypes.CDLL(None).usleep(ctypes.c_uint(int(seconds * SECOND)))


BLOCK: dict[str, Callable[[float], None]] = {"sleep": in_sleep, "socket": in_socket, "C": in_c}
