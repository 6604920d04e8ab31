"""Real processes, looked at and ended by their numbers."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
