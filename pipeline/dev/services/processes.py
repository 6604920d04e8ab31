"""Server processes that outlive their starter and are only ever signalled while they are still themselves."""

import contextlib
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# Kept so that a server this process started is reaped when it ends, and never looks alive as a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


class ServiceError(RuntimeError):
    """A private server did not do what was asked; the message says what to do."""


class Account(NamedTuple):
    """The user that a server runs as."""

    uid: int
    gid: int


class Process(NamedTuple):
    """One process, told apart from a later one with the same pid by its start time and boot."""

    pid: int
    started: str


def unprivileged_account() -> Account | None:
    """The account to drop to, or None when we are an ordinary user already."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    raise ServiceError("PostgreSQL refuses to run as root and there is no user 'postgres': run script/setup.")


def identify(pid: int) -> Process | None:
    """The live process with this pid; None if there is none or it is a zombie."""
    if child := _children.get(pid):
        child.poll()
    try:
        # The command name may hold spaces and brackets: the fields start after the last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else Process(pid, f"{boot}:{fields[19]}")


def alive(process: Process | None) -> bool:
    """True only for this very process, not for a stranger that got its pid."""
    return process is not None and identify(process.pid) == process


def spawn(command: Sequence[str | Path], log: Path, env: Mapping[str, str], account: Account | None) -> Process:
    """Start a server in a session of its own (Ctrl-C does not reach it), with all its output in `log`."""
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=dict(env),
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    _children[child.pid] = child
    process = identify(child.pid)
    if process is None:
        raise ServiceError(f"{command[0]} ended at once: see {log}.")
    return process


def send(process: Process | None, number: signal.Signals) -> None:
    """Signal the process if it is still the same one; otherwise do nothing."""
    if process is not None and alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def wait_gone(process: Process | None, seconds: float) -> bool:
    """Wait until the process has ended; False if it is still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def descendants(process: Process | None) -> list[Process]:
    """The live children of the process, and theirs."""
    if not alive(process):
        return []
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [process.pid] if process else []
    while queue:
        children = parents.get(queue.pop(), [])
        queue += children
        found += [child for pid in children if (child := identify(pid))]
    return found


def end_all(processes: Sequence[Process], grace: float) -> None:
    """Give the processes `grace` seconds together to end by themselves, then kill what is left."""
    deadline = time.monotonic() + grace
    for process in processes:
        if not wait_gone(process, max(0.0, deadline - time.monotonic())):
            send(process, signal.SIGKILL)
            wait_gone(process, 10)
