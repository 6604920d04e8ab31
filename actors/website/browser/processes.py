"""A process and all that it has started: how much memory they have, and an end for every one of them."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> list[int]:
    """``root`` and its descendants."""
    children = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _fields(int(folder.name))):
            children[int(fields[1])].append(int(folder.name))
    found = [root]
    for process in found:
        found += children[process]
    return found


def memory(processes: list[int]) -> int:
    """Bytes that they have for themselves, without files and what they share."""
    return sum(map(_own, processes))


def kill(root: int) -> None:
    """End ``root`` and its descendants. It goes last, so that those who lose their parent are still found below it."""
    while len(found := [process for process in tree(root) if _lives(process)]) > 1:
        for process in found[1:]:
            _kill(process)
    _kill(root)


def _own(process: int) -> int:
    try:
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * PAGE


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _lives(process: int) -> bool:
    """One that has ended and waits for its parent to notice has no life left."""
    return _fields(process)[:1] not in ([], ["Z"], ["X"])


def _fields(process: int) -> list[str]:
    """Of ``/proc/…/stat`` what follows the name, which may hold spaces and brackets; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
