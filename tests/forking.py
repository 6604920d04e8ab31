"""Processes of a test whose packages are imported already: ``python -m`` without the second that imports cost.

Half of what the tests asked of the processor was one process after the other importing SQLAlchemy and the like. Here
one process for each of pytest's imports *other people's* packages, once, and forks itself. Nothing of ours is loaded
in it: what is forked imports the engine and its workflows itself, as its own environment says, and has its own session,
folder, output and pid. It is not reaped before the test asks for its end, so that its pid is nobody else's until then.

A test that is about starting, or about what users start, starts a process of its own (see ``Place.worker``).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
# Of the packages that workers and the command load. None of them starts a thread, or reads the environment for us.
PACKAGES = (
    *("alembic.command", "dramatiq.cli", "orjson", "periodiq", "pika", "psycopg", "pybreaker", "pydantic_settings"),
    *("rich.console", "rich.table", "sqlalchemy.dialects.postgresql.psycopg", "structlog", "typer"),
    *("httpx", "lxml.html", "rapidfuzz.fuzz", "selectolax.lexbor", "tinycss2", "babel.numbers"),
)
# What the interpreter reads before anything is imported, but for its path, which can be changed afterwards.
INTERPRETER = ("PYTHON", "LANG", "LC_", "TZ")
PATH = "PYTHONPATH"
LOOK = 0.01
MOST = 1 << 17


class Forked(subprocess.Popen[bytes]):
    """A process that another one has started for us; to be waited for, signalled and asked as any other."""

    def __init__(self, parent: Forks, pid: int, arguments: list[str]) -> None:
        self._parent = parent
        self.pid, self.args = pid, arguments
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.ask({"reap": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(LOOK)
        return code


class Forks:
    """This process's way to the one that forks."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forking", str(theirs.fileno())],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        out: IO[bytes],
        err: IO[bytes],
        folder: Path = ROOT,
    ) -> subprocess.Popen[bytes]:
        """``python -m module arguments`` in the folder: a new one if its interpreter would not be as ours."""
        if _for_interpreter(environment) != _for_interpreter(self._environment):
            command = [sys.executable, "-m", module, *arguments]
            return subprocess.Popen(
                command, cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True
            )
        order = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
        }
        pid = self.ask(order, out.fileno(), err.fileno())
        assert pid is not None
        return Forked(self, pid, [sys.executable, "-m", module, *arguments])

    def ask(self, order: dict[str, Any], *files: int) -> int | None:
        text = json.dumps(order).encode()
        assert len(text) < MOST
        with self._lock:
            socket.send_fds(self._ours, [text], files)
            answer: int | None = json.loads(self._ours.recv(MOST))
        return answer


@lru_cache(maxsize=1)
def forks() -> Forks:
    """Started at the first use; it ends with this process."""
    return Forks()


def _for_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(INTERPRETER) and name != PATH}


def _find_modules_as(folder: str, path: str | None) -> None:
    """As an interpreter that was started there, with this path."""
    ours = {sys.path[0], *os.environ[PATH].split(os.pathsep)}
    given = [str(Path(folder, entry)) for entry in path.split(os.pathsep)] if path else []
    sys.path[:] = [folder, *given, *(entry for entry in sys.path if entry not in ours)]


def _serve(asked: socket.socket) -> dict[str, Any]:
    """Until whoever asks is gone. Returns in what was forked only: with what it shall become."""
    while True:
        text, files, _, _ = socket.recv_fds(asked, MOST, 2)
        if not text:
            os._exit(0)
        order = json.loads(text)
        if "reap" in order:
            pid, status = os.waitpid(order["reap"], os.WNOHANG)
            asked.send(json.dumps(os.waitstatus_to_exitcode(status) if pid else None).encode())
            continue
        if os.fork() == 0:
            # The answer comes from what was forked, when it is a group of its own and can be killed as one.
            os.setsid()
            asked.send(json.dumps(os.getpid()).encode())
            asked.close()
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            return dict(order)
        for file in files:
            os.close(file)


def main() -> None:
    asked = socket.socket(fileno=int(sys.argv[1]))
    asked.set_inheritable(False)
    for name in PACKAGES:
        importlib.import_module(name)
    ours = [name for name in sys.modules if name.partition(".")[0] in ("pipeline", "actors", "db", "sandbox")]
    assert not ours and threading.active_count() == 1, "only what is the same for all may be there before the fork"
    gc.collect()
    gc.freeze()
    order = _serve(asked)
    os.chdir(order["folder"])
    _find_modules_as(order["folder"], order["environment"].get(PATH))
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = order["arguments"]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
