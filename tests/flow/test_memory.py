"""A worker's memory: few arenas, however many threads."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
import ctypes, threading
from pipeline.worker import startup as memory

{call}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
together = threading.Barrier(12)


def ask() -> None:
    together.wait()
    libc.malloc(2000)
    together.wait()


threads = [threading.Thread(target=ask) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


def arenas(call: str) -> int:
    done = subprocess.run([sys.executable, "-c", THREADS.format(call=call)], capture_output=True, text=True, check=True)
    return done.stdout.count("<heap nr=")


def test_threads_share_two_arenas() -> None:
    """Left alone, glibc makes one for each thread, up to eight a core."""
    assert arenas("") > 2
    assert arenas("memory.keep_together()") <= 2
