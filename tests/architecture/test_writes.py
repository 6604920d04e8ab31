"""Only the SQL files of pipeline/store write to a job's state."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.house import files, text

WRITE = re.compile(
    r"\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE)\s+(ONLY\s+)?(pipeline\.)?(jobs|outbox|attempts)\b", re.IGNORECASE
)

# Tests put rows into states that would take hours to reach otherwise; nothing that runs in production is listed here.
ALLOWED = ("tests/", "bench/")


def test_only_sql_files_write_to_a_jobs_state() -> None:
    """One file, one transition: a write in Python would be a step that no table, fence or test knows of."""
    guilty = {str(path): found for path in _python() if (found := WRITE.findall(text(path)))}
    assert not guilty, f"move these into pipeline/store/functions: {guilty}"


def test_sql_outside_of_the_store_writes_to_no_jobs_state_either() -> None:
    """A workflow's own views.sql or migration keeps to its own tables."""
    guilty = [
        str(path) for path in files(".sql") if path.parts[:2] != ("pipeline", "store") and WRITE.search(text(path))
    ]
    assert not guilty


def _python() -> list[Path]:
    return [path for path in files(".py") if not str(path).startswith(ALLOWED)]
