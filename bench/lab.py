"""The laboratory: private servers, a place of its own for each system, and what PostgreSQL itself counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psycopg

from pipeline.dev import services

ROOT = Path(__file__).parent.parent
PROCESSES, THREADS = 2, 16
BODY = {"text": "x" * 180}  # about 200 bytes as JSON
TEMPLATE = "pipeline"
# The tables of the peers, and where phases with a write put their rows. No name that says "bench": the workers'
# statements are told from the benchmark's own by it.
TABLES = """
    CREATE EXTENSION pg_stat_statements;
    CREATE EXTENSION pg_walinspect;
    CREATE TABLE naive (id bigint PRIMARY KEY, phase text, status text, locked_at timestamptz);
    CREATE TABLE written (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job text, phase text, note text);
    CREATE TABLE plain_jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz DEFAULT now(),
                             workflow text, phase text, status text DEFAULT 'pending', body jsonb);
    CREATE TABLE plain_outbox (job_id uuid PRIMARY KEY, created_at timestamptz DEFAULT now(), phase text)"""
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Place:
    """A database and a vhost: what one system leaves behind does not slow the others."""

    name: str
    folder: Path
    environment: Mapping[str, str]

    @property
    def url(self) -> str:
        return self.environment["DATABASE_URL"]

    @property
    def done(self) -> Path:
        """Where peers write a byte for each job that is finished."""
        return Path(self.environment["DONE_FILE"])

    def database(self) -> Connection:
        return psycopg.connect(self.url, autocommit=True, application_name="bench")


@dataclass(frozen=True)
class Laboratory:
    """The servers of one run."""

    folder: Path
    servers: services.Servers

    @contextmanager
    def place(self, name: str, **settings: str) -> Iterator[Place]:
        """Migrated, with the peers' tables; gone at the end of the block."""
        postgres, rabbitmq = self.servers.postgres, self.servers.rabbitmq
        postgres.create_database(name, TEMPLATE)
        rabbitmq.create_vhost(name)
        try:
            yield Place(name, self.folder, self._environment(name) | settings)
        finally:
            postgres.drop_database(name)
            rabbitmq.delete_vhost(name)

    def _environment(self, name: str) -> dict[str, str]:
        """As a user's shell would have it: what is set for the pipeline in this one does not count."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PIPELINE_")}
        return {
            **inherited,
            **services.environment(self.servers),
            "DATABASE_URL": self.servers.postgres.url(name),
            "RABBITMQ_URL": self.servers.rabbitmq.url(name),
            "PYTHONPATH": str(ROOT),
            "DONE_FILE": str(self.folder / f"{name}.done"),
        }


@contextmanager
def laboratory(workflows: str = "") -> Iterator[Laboratory]:
    """Servers of its own, migrated; everything in a folder that goes away with them."""
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-bench-") as folder,
        services.private_servers(Path(folder), remove=True) as servers,
    ):
        os.environ.update(services.environment(servers), PYTHONPATH=str(ROOT), PIPELINE_WORKFLOWS=workflows)
        with database() as db:
            db.execute(TABLES)
        cli("migrate")
        yield Laboratory(Path(folder), servers)


class Crew:
    """The processes of one system. Frozen unless it is their turn, so that they cost the others nothing."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._log = place.folder / f"{place.name}.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *commands: list[str]) -> None:
        with self._log.open("ab") as log:
            for command in commands:
                self.processes.append(
                    subprocess.Popen(
                        command,
                        cwd=ROOT,
                        env=self._place.environment,
                        start_new_session=True,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                    )
                )

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """At once: what they leave behind goes away with their place."""
        self._signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()
        self.processes.clear()

    def check(self) -> None:
        """Raise if one of them has ended."""
        if any(process.poll() is not None for process in self.processes):
            raise RuntimeError(f"a worker has ended: {self.last_words()}")

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def _signal(self, number: signal.Signals) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, number)


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
    """This project's own workers, on the servers that the environment names."""
    return running(dramatiq("pipeline.actors", processes))


def statements(db: Connection) -> int:
    """Statements of the workers that reached the server; BEGIN and COMMIT are left out, as are the benchmark's own."""
    return int(
        one(
            db,
            """
        SELECT coalesce(sum(s.calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
        WHERE d.datname = current_database()
          AND s.toplevel AND s.query NOT LIKE '%%pg_stat%%' AND s.query NOT LIKE '%%bench%%'
          AND s.query !~* '^(begin|commit|rollback|checkpoint|truncate|create|set)'""",
        )
    )


def wal_end(db: Connection) -> str:
    return str(one(db, "SELECT pg_current_wal_flush_lsn() /* bench */"))


def wal_since(db: Connection, start: str) -> int:
    """Bytes of WAL records, without full-page images, which depend on checkpoints and not on us."""
    records = "SELECT sum(record_size) FROM pg_get_wal_stats(%s, pg_current_wal_flush_lsn()) /* bench */"
    return int(one(db, records, start))


def one(db: Connection, statement: str, *values: Any) -> Any:
    row = db.execute(statement, values).fetchone()
    return row[0] if row else None


def until(condition: Callable[[], bool], timeout: float = 600, pause: float = 0.05) -> None:
    deadline = monotonic() + timeout
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError("the benchmark's jobs did not end")
        sleep(pause)
