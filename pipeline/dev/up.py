"""``pipeline up``: servers, migrations, workers, scheduler, API and dashboard, supervised."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.dev import services
from pipeline.dev.services.state import make_folder
from pipeline.dev.supervise import Program, Supervisor

SANDBOX, DASHBOARD = 8099, 8080


def run(*, processes: int, threads: int, with_sandbox: bool, folder: Path, say: Callable[[str], None]) -> None:
    """Start what is missing, then keep it running until Ctrl-C. Servers that were running before stay."""
    if with_sandbox and _free_port(SANDBOX) != SANDBOX:
        raise BadInput(
            f"port {SANDBOX} is in use, by another sandbox? Stop it, or start without --sandbox and use that one"
        )
    private = _on_private_servers(folder)
    with alone(folder) if private else nullcontext():
        _run(processes, threads, with_sandbox=with_sandbox, folder=folder, private=private, say=say)


def _on_private_servers(folder: Path) -> bool:
    """Whether it is to run on those of this folder. The command itself has set their addresses if they run."""
    if not ("DATABASE_URL" in os.environ and "RABBITMQ_URL" in os.environ):
        return True
    servers = services.running(folder)
    return servers is not None and services.environment(servers)["DATABASE_URL"] == os.environ["DATABASE_URL"]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """The one that runs on the private servers of this folder; it stops them in the end."""
    make_folder(folder)
    with (folder / "up.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise BadInput(
                f"pipeline up runs in this folder already (process {file.read().strip() or 'unknown'}), and its end "
                "stops the servers. Stop it first, start more workers with dramatiq pipeline.actors, or choose another "
                "--folder"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _run(
    processes: int, threads: int, *, with_sandbox: bool, folder: Path, private: bool, say: Callable[[str], None]
) -> None:
    ours = private and services.running(folder) is None
    if private:
        say("starting private PostgreSQL and RabbitMQ …")
        servers = services.start(folder)
        for name, value in services.environment(servers).items():
            os.environ.setdefault(name, value)
        say(
            f"  management UI {servers.management_url}, user {servers.management_user.name}, "
            f"password {servers.management_user.password}"
        )
    try:
        _migrate()
        os.environ.setdefault("PIPELINE_API_PORT", str(_free_port(DASHBOARD)))
        if with_sandbox:
            # Scraping lets no loopback address through unless it is named.
            os.environ.setdefault("PIPELINE_SANDBOX_URL", f"http://127.0.0.1:{SANDBOX}")
        supervisor = Supervisor(programs(processes, threads, with_sandbox=with_sandbox), say)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: supervisor.ask_to_stop())
        supervisor.start()
        say(f"{processes} workers with {threads} threads each are up; Ctrl-C stops everything")
        say(f"  dashboard {_dashboard(int(os.environ['PIPELINE_API_PORT']))}")
        supervisor.wait()
        grace = settings.get().shutdown_grace_seconds
        say(f"stopping: jobs that run have {grace:g} s, then they are released; Ctrl-C again ends everything at once")
        supervisor.stop()
        if supervisor.hurried:
            say("everything was killed; jobs that ran go on at the next start")
    finally:
        if ours:
            services.stop(folder)
    say("stopped")


def _dashboard(port: int) -> str:
    """Its address, and why it is not the usual one."""
    taken = port != DASHBOARD and _free_port(DASHBOARD) != DASHBOARD
    return f"http://127.0.0.1:{port}/{f' (port {DASHBOARD} is taken)' if taken else ''}"


def programs(processes: int, threads: int, *, with_sandbox: bool, log: Path | None = None) -> list[Program]:
    """Each worker process under a Dramatiq of its own: plain Dramatiq stops all when one dies."""
    python = sys.executable
    dramatiq = [python, "-m", "dramatiq", "pipeline.actors", "--processes", "1", "--threads", str(threads)]
    found = [Program(f"worker-{n}", dramatiq, log=log) for n in range(1, processes + 1)]
    # periodiq has no __main__; its entry point is called as its console script would.
    scheduler = [
        python,
        "-c",
        "import sys, periodiq; sys.argv = ['periodiq', 'pipeline.actors']; periodiq.entrypoint()",
    ]
    found.append(Program("scheduler", scheduler, grace=5, log=log))
    found.append(Program("api", [python, "-m", "pipeline.front.cli.main", "api"], grace=5, log=log))
    if with_sandbox:
        found.append(Program("sandbox", [python, "-m", "sandbox", "--port", str(SANDBOX)], grace=5, log=log))
    return found


def _free_port(wanted: int) -> int:
    """The wanted port, or a free one if somebody has it."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port is free on 127.0.0.1")


def _migrate() -> None:
    import pipeline.actors  # noqa: F401  declares the workflows
    from pipeline.worker.prepare import upgrade

    upgrade(settings.get())
