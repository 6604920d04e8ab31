"""Folders of running jobs: ``<temp_folder>/<this database>/<this worker>/<job>-<fence>``.

A living worker holds a lock (flock) on its folder, which the system releases when the process ends, however it ends.
Whoever cleans up removes a folder only under that lock: never while its worker may live, whatever PostgreSQL says of
it, and never a folder of another database.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from pathlib import Path

import psycopg

from pipeline.observe import logs
from pipeline.store.engine import Wire
from pipeline.store.gateway import session

log = logs.get("pipeline.temp_folders")

# A folder may be swept away between its making and its locking.
TRIES = 5


def database_id(connection: Wire) -> str:
    """A short name of this database: the same for all of its workers, another for every other database."""
    try:
        with connection.transaction():
            row = session.identity(connection)
    except psycopg.errors.InsufficientPrivilege:
        row = session.address(connection)
    return hashlib.sha256(repr(row).encode()).hexdigest()[:12]


class TempFolders:
    """The folders of one database on this host. ``sweep`` needs no database, and no worker of its own."""

    def __init__(self, temp_folder: Path, database: str) -> None:
        self._home = temp_folder / database
        self._mine: Path | None = None
        self._lock: int | None = None
        # One thread at a time: the system lets a process wait for its own lock, for ever.
        self._asking = threading.Lock()

    def open(self, worker_id: str) -> Path:
        """Make this worker's folder and hold it until ``close``, or until this process ends.

        A worker starts without it, too: phases that need no folder must not suffer from a full disk. It is asked for
        again with every job (see ``root``): nobody holds a folder that was made later, and it would be swept away.
        """
        with self._asking:
            return self._open(worker_id)

    def _open(self, worker_id: str) -> Path:
        self._mine = self._home / worker_id
        try:
            for _ in range(TRIES):
                self._mine.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(self._mine, wait=True)
                if self._lock is not None:
                    return self._mine
            log.warning("the folder for jobs cannot be locked; nobody will remove it", folder=str(self._mine))
        except OSError as error:
            log.warning("no folder for jobs can be made", folder=str(self._mine), error=str(error))
        return self._mine

    def root(self, worker_id: str) -> Path:
        """This worker's folder, held from now on at the latest: a disk may have been mounted over it meanwhile."""
        with self._asking:
            if self._mine is not None and self._lock is not None:
                if _is_lock_of(self._lock, self._mine):
                    return self._mine
                os.close(self._lock)
                self._lock = None
            return self._open(worker_id)

    def sweep(self) -> list[str]:
        """Remove the folders that dead workers left, and return their names. A folder in use is locked."""
        folders = self._home.iterdir() if self._home.is_dir() else ()
        return [folder.name for folder in folders if _remove(folder)]

    def close(self) -> None:
        """Remove this worker's own folder, and let go of it."""
        if self._mine is not None and self._lock is not None:
            shutil.rmtree(self._mine, ignore_errors=True)
            os.close(self._lock)
        self._mine = self._lock = None


def _remove(folder: Path) -> bool:
    lock = _lock(folder, wait=False)
    if lock is None:
        return False
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
    if folder.exists():
        log.warning("the folder of a dead worker could not be removed", folder=str(folder))
        return False
    return True


def _lock(folder: Path, *, wait: bool) -> int | None:
    """The lock of the folder itself (a file in it could be removed by a cleaner of /tmp), or None if it is taken.

    Descriptors that Python opens are closed in programs that a phase starts, so that none of them keeps the lock.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        # Somebody may have removed it just before: then this is the lock of a folder that nobody finds any more.
        if _is_lock_of(handle, folder):
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def _is_lock_of(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))  # noqa: PTH116  beside fstat
    except OSError:
        return False
