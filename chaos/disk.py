"""Small file systems, which can be full without harm to anybody else. Mounting one needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PIECE = 4096


def cannot_mount() -> str | None:
    """Why there can be none on this machine, or nothing."""
    return "mounting a small file system needs root" if os.geteuid() != 0 else None


def mount(folder: Path, size: str) -> str | None:
    """Put an empty file system over the folder; returns what mount said if it could not."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "chaos", str(folder)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return (tried.stderr.strip()[:100] or "mount failed") if tried.returncode else None


def unmount(folder: Path) -> None:
    """Take it away again, also while files in it are open."""
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@contextmanager
def filled(folder: Path) -> Iterator[int]:
    """Not a byte is free for a while; yields how many were."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        taken = 0
        try:
            while True:
                taken += file.write(b"\0" * PIECE)
        except OSError:
            pass
    try:
        yield taken
    finally:
        ballast.unlink(missing_ok=True)
