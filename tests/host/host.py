"""The shop and where it runs: an environment, a database and a vhost of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from pipeline.dev.services import Servers
from pipeline.dev.services.postgres_cluster import binary
from pipeline.testing.servers.workers import kill_group
from tests.place import Place

SHOP = Path(__file__).parent / "shop"
# For a machine with twenty other things to do: what is not there by then does not come.
DEADLINE = 240.0
READY = "ready for action"


class Host(Place):
    """A place whose processes are the application's, started in its folder and with nothing of the tests' own."""

    def __init__(self, servers: Servers, name: str, folder: Path, environment: Path) -> None:
        super().__init__(servers, name, folder)
        self.home = folder / "shop"
        self.programs = environment / "bin"
        shutil.copytree(SHOP, self.home, ignore=shutil.ignore_patterns("__pycache__"))

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "DATABASE_URL": self.database_url,
            "RABBITMQ_URL": self.servers.rabbitmq.url(self.name),
            "PIPELINE_WORKFLOWS": "shop.work",
            "PIPELINE_TEMP_FOLDER": str(self.folder / "temp"),
        }

    def run(
        self, program: str, *arguments: str, without: tuple[str, ...] = (), **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """A program of the environment, to its end; ``without`` some of the settings."""
        chosen = {name: value for name, value in self.environment().items() if name not in without}
        return subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.home,
            env={**chosen, **extra},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    def do(self, program: str, *arguments: str, **extra: str) -> str:
        """As ``run``, for what must succeed; both outputs together."""
        done = self.run(program, *arguments, without=(), **extra)
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{said}"
        return said

    def start(self, program: str, *arguments: str, says: str, **extra: str) -> tuple[subprocess.Popen[bytes], str]:
        """A program that stays, once it has said that it is ready; with what it said."""
        log = self.folder / f"{self._workers.count}-{program}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(self.programs / program), *arguments],
                cwd=self.home,
                env={**self.environment(), **extra},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._workers.adopt(process, log)

        def ready() -> re.Match[str] | None:
            assert process.poll() is None, log.read_text()
            return re.search(says, log.read_text())

        found: re.Match[str] = self.until(ready, DEADLINE, f"{program} to say {says!r}")
        return process, found[0]

    def end(self, process: subprocess.Popen[bytes]) -> str:
        """Ask it to stop, wait until it has, and return all that it said."""
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE)
        return self.said(process)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        kill_group(process.pid)
        process.wait()

    def said(self, process: subprocess.Popen[bytes]) -> str:
        return self._workers.log(process)

    def dump(self) -> str:
        """Everything in the database outside of the schema ``pipeline``, as PostgreSQL writes it down, with all rows."""
        command = [binary("pg_dump"), "--exclude-schema=pipeline", f"--dbname={self.database_url}"]
        text = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
        # A random word, against tampering with the dump.
        return re.sub(r"^\\(un)?restrict .*$", "", text, flags=re.MULTILINE)

    def schemas(self) -> set[str]:
        rows = self.rows(
            r"SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
        )
        return {row["nspname"] for row in rows}

    def print_job(self, copies: int) -> int:
        """A row of the shop's own table; its number."""
        return self.count("INSERT INTO jobs (project_id, copies) VALUES (1, %s) RETURNING id", copies)

    def task(self, name: str) -> dict[str, Any]:
        return self.row("SELECT attempts, signed FROM tasks WHERE name = %s", name) or {}

    def close(self) -> None:
        """Leave no process behind."""
        self._workers.close()
        if self._db is not None:
            self._db.close()
