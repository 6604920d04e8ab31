"""A private PostgreSQL server."""

import shutil
import signal
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import sql

from pipeline.dev.services import processes
from pipeline.dev.services.ports import LOOPBACK, free_port
from pipeline.dev.services.postgres_cluster import FORMER_USER, binary, environment, prepare_cluster
from pipeline.dev.services.processes import ServiceError
from pipeline.dev.services.readiness import wait_until
from pipeline.dev.services.state import State

DATABASE = "pipeline"
START_SECONDS = 60
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # a socket's path may have 107 bytes only, and project folders are deep
    "max_connections": "300",
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_preload_libraries": "pg_stat_statements",
    # Of many databases, as tests have them, none is forgotten while somebody counts.
    "pg_stat_statements.max": "20000",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}


class Postgres:
    """One server, its data, its log and its password; `start` after `kill` recovers every committed row."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._state = State(self._folder, "postgres")
        self._log = self._folder / "postgres.log"

    @property
    def running(self) -> bool:
        """True while the server that this folder recorded is alive."""
        return processes.alive(self._state.process())

    @property
    def pids(self) -> list[int]:
        """The server's process and its children."""
        process = self._state.process()
        return [p.pid for p in (process, *processes.descendants(process)) if p and processes.alive(p)]

    def url(self, database: str = DATABASE) -> str:
        """Where to connect; the same for as long as nobody else takes the port while the server is down."""
        state = self._state.read()
        if not state:
            raise ServiceError(f"No private PostgreSQL was ever started in {self._folder}: start it first.")
        return (
            f"postgresql://{state.get('user', FORMER_USER)}:{state['password']}@{LOOPBACK}:{state['port']}/{database}"
        )

    def start(self) -> None:
        """Return when the server answers and the database `pipeline` exists; at once when it runs already."""
        if self.running:
            return
        data = prepare_cluster(self._folder, self._state)
        port = free_port(self._state.read().get("port"))
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [binary("postgres"), "-D", str(data), "-p", str(port), *settings]
        process = processes.spawn(command, self._log, environment(), processes.unprivileged_account())
        self._state.update(port=port, process=process)
        try:
            wait_until(self._ready, process, self._log, "PostgreSQL", START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Return when the server is gone: `fast` ends sessions tidily, `immediate` leaves recovery to the start."""
        process, children = self._state.process(), processes.descendants(self._state.process())
        processes.send(process, signal.SIGINT if mode == "fast" else signal.SIGQUIT)
        if not processes.wait_gone(process, 60):
            self.kill()
        processes.end_all(children, grace=5)

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop and start again at the same address."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """End the server and its backends with SIGKILL, as if the machine had died."""
        process = self._state.process()
        # A stopped postmaster forks no more, so that no backend escapes and holds the shared memory at the next start.
        processes.send(process, signal.SIGSTOP)
        family = [*processes.descendants(process), *([process] if process else [])]
        for member in reversed(family):
            processes.send(member, signal.SIGKILL)
        processes.end_all(family, grace=10)

    def remove(self) -> None:
        """Delete the data, wherever it is, and forget the password; the server must be stopped."""
        if self.running:
            raise ServiceError(f"PostgreSQL in {self._folder} is running: stop it before you delete its data.")
        if place := self._state.read().get("place"):
            shutil.rmtree(place, ignore_errors=True)
        self._log.unlink(missing_ok=True)
        self._state.forget()

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create a database, as a copy of `template` if given (nobody may be connected to that)."""
        source = sql.SQL(" TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
        self._execute(sql.SQL("CREATE DATABASE {}{}").format(sql.Identifier(name), source))

    def drop_database(self, name: str) -> None:
        """Drop a database, ending the sessions in it; one that does not exist is fine."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _ready(self) -> bool:
        try:
            with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5) as connection:
                found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
                if found.fetchone() is None:
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
                return True
        except psycopg.OperationalError:
            return False

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)
