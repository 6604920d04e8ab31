"""A cache of JSON values in one SQLite file, shared by all threads and processes of a machine.

SQLAlchemy is the library: it is here already, it is kept, and it stores plain text. (diskcache, the usual choice,
has had no release since 2023 and reads pickles by default, for which it has an advisory without a fix.)
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from pipeline import count

log = structlog.get_logger("actors.scrape.cache")
FILE = "cache.sqlite3"
PAGE = 4096
LARGEST_VALUE = 1 << 20
BUSY_SECONDS = 2.0
CREATE = """CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL NOT NULL)
    WITHOUT ROWID"""
READ = text("SELECT value FROM entries WHERE key = :key AND expires > :now")
WRITE = text("""INSERT INTO entries (key, value, expires) VALUES (:key, :value, :expires)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires""")
EXPIRED = text("DELETE FROM entries WHERE expires <= :now")
OLDEST = text("""DELETE FROM entries WHERE key IN (
    SELECT key FROM entries ORDER BY expires LIMIT (SELECT max(count(*) / 4, 1) FROM entries))""")


@dataclass(frozen=True)
class Cache:
    """Values live for ``ttl`` seconds; the file never grows beyond ``max_bytes``: the oldest make room.

    A cache that is broken, locked or full is a cache without the value. It never raises.
    """

    folder: Path
    ttl: float
    max_bytes: int

    def get(self, key: str) -> Any | None:
        """The value, or None; counted as ``cache.hit`` or ``cache.miss``."""
        try:
            with self._engine().connect() as connection:
                found = connection.execute(READ, {"key": key, "now": time.time()}).scalar_one_or_none()
            value = None if found is None else json.loads(found)
        except (SQLAlchemyError, OSError, ValueError, RecursionError) as error:
            _complain("read", self.folder, error)
            value = None
        count("cache.miss" if value is None else "cache.hit")
        return value

    def set(self, key: str, value: Any) -> None:
        """Keep a JSON value; one above 1 MiB is not kept."""
        try:
            written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            if len(written) > LARGEST_VALUE:
                return
            self._write({"key": key, "value": written, "expires": time.time() + self.ttl})
        except (SQLAlchemyError, OSError, ValueError, TypeError, RecursionError) as error:
            _complain("write", self.folder, error)

    def _write(self, entry: dict[str, Any]) -> None:
        try:
            with self._engine().begin() as connection:
                connection.execute(WRITE, entry)
        except SQLAlchemyError as error:
            if "full" not in str(error):
                raise
            with self._engine().begin() as connection:
                make_room(connection)
            with self._engine().begin() as connection:
                connection.execute(WRITE, entry)

    def _engine(self) -> Engine:
        return _engine(os.getpid(), str(self.folder), self.max_bytes)


def make_room(connection: Connection) -> None:
    """Remove what has expired; if nothing has, the quarter that would expire first."""
    if connection.execute(EXPIRED, {"now": time.time()}).rowcount == 0:
        connection.execute(OLDEST)


@lru_cache(maxsize=8)
def _engine(pid: int, folder: str, max_bytes: int) -> Engine:  # noqa: ARG001  a forked child opens its own
    Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = create_engine(f"sqlite:///{Path(folder) / FILE}", connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        for statement in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"max_page_count = {max_bytes // PAGE}",
            f"journal_size_limit = {max_bytes // 4}",
        ):
            connection.execute(f"PRAGMA {statement}")
        connection.execute(CREATE)

    return engine


def _complain(step: str, folder: Path, error: Exception) -> None:
    count("cache.error")
    _warn(step, str(folder), f"{type(error).__name__}: {error}"[:300])


@lru_cache(maxsize=64)
def _warn(step: str, folder: str, error: str) -> None:
    """Once for each kind of trouble: every job would say the same."""
    log.warning(
        "the cache is not usable and was passed over",
        step=step,
        folder=folder,
        error=error,
        remedy="delete the folder, or set CACHE_ENABLED=false",
    )
