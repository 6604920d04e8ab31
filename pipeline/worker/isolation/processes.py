"""What Linux offers to keep processes together: names, death signals, groups, and how much memory one has."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
PAGE = resource.getpagesize()
_libc = ctypes.CDLL(None, use_errno=True)


def call_it(name: bytes) -> None:
    """What ``ps`` and ``top`` show, of at most 15 characters: a forked process has its parent's command line."""
    _libc.prctl(PR_SET_NAME, name, 0, 0, 0)


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Get the signal when the thread of ``parent`` that forked this process ends, even in native code that never
    returns to Python."""
    _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def kill_group(pid: int) -> None:
    """End a child and all that it started. Only for one that has not been reaped: its number could be another's."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def cause_of_death(code: int) -> str:
    if code >= 0:
        return f"the child process ended with exit code {code} and no answer"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
    return f"the child process was killed by {name}{hint}"


def memory() -> tuple[int, int]:
    """Bytes of this process's address space, and of what is resident of it."""
    with open("/proc/self/statm", "rb", buffering=0) as statm:  # noqa: PTH123  once a job
        size, resident = statm.read(64).split()[:2]
    return int(size) * PAGE, int(resident) * PAGE


@contextmanager
def at_most(more: int | None) -> Iterator[None]:
    """In this block the address space grows by no more than so many bytes, whatever was loaded before."""
    if more is None:
        yield
        return
    before, hardest = resource.getrlimit(resource.RLIMIT_AS)
    bounds = [memory()[0] + more, before, hardest]
    # The soft limit alone: it can be raised again.
    resource.setrlimit(resource.RLIMIT_AS, (min(one for one in bounds if one != resource.RLIM_INFINITY), hardest))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hardest))
