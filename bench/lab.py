"""The laboratory: private servers, worker processes, and what PostgreSQL itself counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg

from pipeline.dev import services

ROOT = Path(__file__).parent.parent
PROCESSES, THREADS = 2, 16
BODY = {"text": "x" * 180}  # about 200 bytes as JSON
Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def laboratory() -> Iterator[Path]:
    """Servers of its own, migrated; everything in a folder that goes away with them."""
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
    ):
        os.environ.update(
            services.environment(servers),
            PYTHONPATH=str(ROOT),
            PIPELINE_WORKFLOWS="bench.chain",
            PIPELINE_LOG_LEVEL="ERROR",
            DONE_FILE=f"{folder}/done",
        )
        with database() as db:
            for extension in ("pg_stat_statements", "pg_walinspect"):
                db.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
            db.execute("CREATE TABLE naive (id int PRIMARY KEY, phase text, status text, locked_at timestamptz)")
            db.execute("CREATE DATABASE peers")
        os.environ["PEER_DATABASE_URL"] = os.environ["DATABASE_URL"].rsplit("/", 1)[0] + "/peers"
        subprocess.run(
            [sys.executable, "-m", "pipeline.front.cli.main", "migrate"], check=True, cwd=ROOT, capture_output=True
        )
        yield Path(folder)


def cli(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pipeline.front.cli.main", *words], check=True, cwd=ROOT, capture_output=True)


@contextmanager
def database() -> Iterator[Connection]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, application_name="bench") as connection:
        yield connection


@contextmanager
def running(*commands: list[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs that run until the end of the block; each in a session of its own, ended with all its children."""
    started = [
        subprocess.Popen(
            command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for command in commands
    ]
    try:
        yield started
    finally:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def dramatiq(module: str, processes: int = PROCESSES) -> list[str]:
    return [sys.executable, "-m", "dramatiq", module, "--processes", str(processes), "--threads", str(THREADS)]


def workers(processes: int = PROCESSES) -> AbstractContextManager[list[subprocess.Popen[bytes]]]:
    """This project's own workers."""
    return running(dramatiq("pipeline.actors", processes))


def clear(db: Connection) -> None:
    db.execute("TRUNCATE pipeline.jobs, outbox, attempts CASCADE")


def statements(db: Connection) -> int:
    """Statements of the workers that reached the server; BEGIN and COMMIT are left out, as are the benchmark's own."""
    return int(
        one(
            db,
            """
        SELECT coalesce(sum(s.calls), 0) FROM pg_stat_statements s
        WHERE s.toplevel AND s.query NOT LIKE '%%pg_stat%%' AND s.query NOT LIKE '%%bench%%'
          AND s.query !~* '^(begin|commit|rollback|checkpoint|truncate|create|set)'""",
        )
    )


def wal_end(db: Connection) -> str:
    return str(one(db, "SELECT pg_current_wal_insert_lsn() /* bench */"))


def wal_since(db: Connection, start: str) -> int:
    """Bytes of WAL records, without full-page images, which depend on checkpoints and not on us."""
    db.execute("SELECT pg_switch_wal() /* bench */")
    return int(one(db, "SELECT sum(record_size) FROM pg_get_wal_stats(%s, pg_current_wal_lsn()) /* bench */", start))


def one(db: Connection, statement: str, *values: Any) -> Any:
    row = db.execute(statement, values).fetchone()
    return row[0] if row else None


def until(condition: Callable[[], bool], timeout: float = 600, pause: float = 0.05) -> None:
    deadline = monotonic() + timeout
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError("the benchmark's jobs did not end")
        sleep(pause)


def all_done(db: Connection) -> bool:
    return not one(db, "SELECT EXISTS (SELECT FROM pipeline.outbox /* bench */)") and not one(
        db, "SELECT EXISTS (SELECT FROM pipeline.jobs WHERE completed_at IS NULL) /* bench */"
    )
