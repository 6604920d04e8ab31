"""``script/demo``: the workflows from nothing to their results, on real servers and real worker processes."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sqlalchemy import text

from pipeline import services
from pipeline.front.supervise import Supervisor
from pipeline.front.up import programs

SITES = 20
DEADLINE = 180.0
out = Console()


def main() -> int:
    """Run it; 0 if every job ended as it should."""
    started = monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-demo-")))
        with out.status("starting private PostgreSQL and RabbitMQ …"):
            servers = stack.enter_context(services.private_servers(folder, remove=True))
        os.environ.update(services.environment(servers))
        os.environ["PIPELINE_LOG_LEVEL"] = "ERROR"
        out.print(
            f"servers are up after {monotonic() - started:.1f} s; management UI {servers.management_url}",
            highlight=False,
        )
        stack.enter_context(_sandbox())
        ended = _run(stack, folder / "workers.log")
    out.print(f"done in {monotonic() - started:.1f} s; nothing is left running", highlight=False)
    return 0 if ended else 1


def _run(stack: ExitStack, log: Path) -> bool:
    from pipeline.flow import submit
    from pipeline.front.cli_run import migrate

    migrate()
    supervisor = Supervisor(
        programs(2, 8, with_sandbox=False, log=log), say=lambda line: out.print(f"  [dim]{line}[/dim]")
    )
    stack.callback(supervisor.stop)
    supervisor.start()
    base = os.environ["PIPELINE_SANDBOX_URL"]
    jobs = submit.submit_many(None, "website", [{"url": f"{base}/sites/{n}/"} for n in range(1, SITES + 1)])
    _watch(jobs)
    _results(jobs)
    return all(row["status"] == "succeeded" for row in _rows(jobs))


def _watch(jobs: list[UUID]) -> None:
    """Progress until all are final; half way, a worker is killed to show that nothing is lost."""
    columns = (TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    killed, deadline = False, monotonic() + DEADLINE
    with Progress(*columns, console=out) as progress:
        bar = progress.add_task("website analyses", total=len(jobs))
        while monotonic() < deadline:
            done = sum(row["completed_at"] is not None for row in _rows(jobs))
            progress.update(bar, completed=done)
            if done == len(jobs):
                return
            if not killed and done >= len(jobs) // 4:
                killed = _kill_one(progress)
            sleep(0.1)


def _kill_one(progress: Progress) -> bool:
    from pipeline.flow import inspect

    victim = next((worker for worker in inspect.workers() if worker["state"] == "alive"), None)
    if victim is None:
        return False
    progress.console.print(
        f"  kill -9 {victim['pid']}: a worker dies with {victim['running']} jobs in hand", highlight=False
    )
    os.kill(victim["pid"], signal.SIGKILL)
    return True


def _results(jobs: list[UUID]) -> None:
    table = Table(title="website: website-analysis → prompt-forming → model-analysis")
    for name in ("site", "status", "cut off", "lang"):
        table.add_column(name, no_wrap=True)
    left = max(out.width - 50, 20)  # what the four leave; a column that may grow would squeeze them to nothing
    table.add_column("title", no_wrap=True, max_width=left * 2 // 5)
    table.add_column("what the model says", no_wrap=True, max_width=left * 3 // 5)
    for row in sorted(_rows(jobs), key=lambda row: int(row["url"].rstrip("/").rsplit("/", 1)[1])):
        answer = row["analysis"] or {}
        page = row["page"] or {}
        said = str(answer.get("summary") or row["error_message"] or "")
        site = row["url"].split("/", 3)[3]
        table.add_row(
            site, row["status"], str(row["lost"]), page.get("language") or "", page.get("title") or "", said[:70]
        )
    out.print(table)


def _rows(jobs: list[UUID]) -> list[dict[str, Any]]:
    from pipeline.flow import database

    statement = text("""SELECT j.status, j.completed_at, j.error_message, j.body->>'url' AS url,
        w.page, w.answer AS analysis,
        (SELECT count(*) FROM attempts a WHERE a.job_id = j.id AND a.outcome = 'crashed') AS lost
        FROM jobs j LEFT JOIN website_analyses w ON w.job_id = j.id WHERE j.id = ANY (:ids) ORDER BY j.id""")
    with database.engine().connect() as connection:
        return [dict(row) for row in connection.execute(statement, {"ids": jobs}).mappings()]


@contextmanager
def _sandbox() -> Iterator[None]:
    from pipeline.sandbox import running_sandbox

    with running_sandbox() as sandbox:
        os.environ["PIPELINE_SANDBOX_URL"] = sandbox.url
        yield


if __name__ == "__main__":
    sys.exit(main())
