"""This process's way to PostgreSQL, opened at the first use (never at import: workers fork after it)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from time import sleep
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from db import engine as engines
from pipeline import settings

Answer = TypeVar("Answer")


def engine() -> Engine:
    """The SQLAlchemy engine of this process; a forked child gets one of its own."""
    return _engine(os.getpid(), settings.get().sqlalchemy_url)


@lru_cache(maxsize=4)
def _engine(pid: int, url: str) -> Engine:  # noqa: ARG001  the pid is there to be part of the key
    return engines.engine(url)


def insist(work: Callable[[Connection], Answer]) -> Answer:
    """Run a fenced, repeatable statement until PostgreSQL answers: what depends on it must not go unrecorded."""
    delay = 0.1
    while True:
        try:
            with engine().begin() as connection:
                return work(connection)
        except OperationalError:
            sleep(delay)
            delay = min(delay * 2, 5.0)
