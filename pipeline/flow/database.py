"""This process's way to PostgreSQL, opened at the first use (never at import: workers fork after it)."""

from __future__ import annotations

import os
from functools import lru_cache

from sqlalchemy import Engine

from db import engine as engines
from pipeline import settings


def engine() -> Engine:
    """The SQLAlchemy engine of this process; a forked child gets one of its own."""
    return _engine(os.getpid(), settings.get().sqlalchemy_url)


@lru_cache(maxsize=4)
def _engine(pid: int, url: str) -> Engine:  # noqa: ARG001  the pid is there to be part of the key
    return engines.engine(url)
