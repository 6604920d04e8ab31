"""``pipeline up``: servers, migrations, workers, scheduler, API and dashboard, supervised."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.dev import services
from pipeline.dev.supervise import Program, Supervisor

SANDBOX = 8099


def run(*, processes: int, threads: int, with_sandbox: bool, folder: Path, say: Callable[[str], None]) -> None:
    """Start what is missing, then keep it running until Ctrl-C. Servers that were running before stay."""
    if with_sandbox and _free_port(SANDBOX) != SANDBOX:
        raise BadInput(
            f"port {SANDBOX} is in use, by another sandbox? Stop it, or start without --sandbox and use that one"
        )
    private = not ("DATABASE_URL" in os.environ and "RABBITMQ_URL" in os.environ)
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
        os.environ.setdefault("PIPELINE_API_PORT", str(_free_port(8080)))
        if with_sandbox:
            # Scraping lets no loopback address through unless it is named.
            os.environ.setdefault("PIPELINE_SANDBOX_URL", f"http://127.0.0.1:{SANDBOX}")
        supervisor = Supervisor(programs(processes, threads, with_sandbox=with_sandbox), say)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: supervisor.ask_to_stop())
        supervisor.start()
        say(f"{processes} workers with {threads} threads each are up; Ctrl-C stops everything")
        say(f"  dashboard http://127.0.0.1:{os.environ['PIPELINE_API_PORT']}/")
        supervisor.wait()
        say("stopping …")
        supervisor.stop()
    finally:
        if ours:
            services.stop(folder)
    say("stopped")


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
