"""``pipeline up``: servers, migrations, workers and scheduler, supervised."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline import services
from pipeline.front.supervise import Program, Supervisor


def run(*, processes: int, threads: int, with_sandbox: bool, folder: Path, say: Callable[[str], None]) -> None:
    """Start what is missing, then keep it running until Ctrl-C. Servers that were running before stay."""
    private = not ("DATABASE_URL" in os.environ and "RABBITMQ_URL" in os.environ)
    ours = private and services.running(folder) is None
    if private:
        say("starting private PostgreSQL and RabbitMQ …")
        servers = services.start(folder)
        for name, value in services.environment(servers).items():
            os.environ.setdefault(name, value)
        say(f"  management UI {servers.management_url}, user {servers.management_user.name}, "
            f"password {servers.management_user.password}")  # fmt: skip
    try:
        _migrate()
        supervisor = Supervisor(programs(processes, threads, with_sandbox=with_sandbox), say)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: supervisor.ask_to_stop())
        supervisor.start()
        say(f"{processes} workers with {threads} threads each are up; Ctrl-C stops everything")
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
    if with_sandbox:
        found.append(Program("sandbox", [python, "-m", "pipeline.sandbox", "--port", "8099"], grace=5, log=log))
    return found


def _migrate() -> None:
    from pipeline.front.cli_run import migrate

    migrate()
