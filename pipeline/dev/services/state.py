"""`services.json`: where the private servers of a folder are, and how to reach them."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.dev.services.processes import Process


class State:
    """One server's section of the file. Only its owner can read the file; a crash leaves the old or the new content."""

    def __init__(self, folder: Path, section: str) -> None:
        self._folder = folder
        self._path = folder / "services.json"
        self._section = section

    def read(self) -> dict[str, Any]:
        """What is recorded; empty when the server never started in this folder."""
        return _load(self._path).get(self._section, {})

    def update(self, **values: Any) -> dict[str, Any]:
        """Change these values and keep the others, also while the other server's section is being written."""
        with exclusive(self._folder, "services.lock"):
            everything = _load(self._path)
            section = everything.setdefault(self._section, {})
            section.update(values)
            _replace(self._path, everything)
            return section

    def forget(self) -> None:
        """Drop this server's section."""
        with exclusive(self._folder, "services.lock"):
            everything = _load(self._path)
            everything.pop(self._section, None)
            _replace(self._path, everything)
            if not everything:
                self._path.unlink()

    def process(self, key: str = "process") -> Process | None:
        """The recorded process; it may have ended since."""
        recorded = self.read().get(key)
        return Process(*recorded) if recorded else None


@contextlib.contextmanager
def exclusive(folder: Path, name: str) -> Iterator[None]:
    """Hold a lock that others, in this process or another, wait for; it goes with the process that held it."""
    make_folder(folder)
    with (folder / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_folder(folder: Path) -> None:
    """Create the folder so that PostgreSQL's account can pass through it but nobody can list it."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)


def _load(path: Path) -> dict[str, dict[str, Any]]:
    content: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return content


def _replace(path: Path, content: dict[str, dict[str, Any]]) -> None:
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file, indent=2)
    fresh.replace(path)
