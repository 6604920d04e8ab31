"""``script/demo``: four workflows and an audit, from nothing to their results, on real servers and worker processes."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import text

from pipeline import settings
from pipeline.dev import services
from pipeline.dev.supervise import Supervisor
from pipeline.dev.up import programs
from script.demo_acts import ACTS, results

DEADLINE = 240.0
WORKFLOWS = ("actors.workflows", "script.demo_audit")
ALL = text("SELECT workflow, count(*), count(completed_at) FROM pipeline.jobs GROUP BY workflow")
SCHEDULED = text("SELECT count(*) FROM pipeline.schedules")
BAD = text("SELECT count(*) FROM pipeline.jobs WHERE status <> 'succeeded'")
out = Console()


def main(look: Callable[[], None] = lambda: None, workflows: Sequence[str] = WORKFLOWS) -> int:
    """Run it; 0 if every job ended as it should. ``look``: what somebody does at its end, while all still runs."""
    started = monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-demo-")))
        with out.status("starting private PostgreSQL and RabbitMQ …"):
            servers = stack.enter_context(services.private_servers(folder, remove=True))
        os.environ.update(services.environment(servers))
        os.environ["PIPELINE_WORKFLOWS"] = ",".join(workflows)
        os.environ["PIPELINE_LOG_LEVEL"] = "ERROR"
        os.environ.setdefault("PIPELINE_API_PORT", "0")
        os.environ["PIPELINE_DOCUMENT_FOLDER"] = str(folder / "documents")
        os.environ["CACHE_FOLDER"] = str(folder / "cache")
        os.environ["WIKIDATA_RATE"] = "50"
        out.print(
            f"servers are up after {monotonic() - started:.1f} s; management UI {servers.management_url}",
            highlight=False,
        )
        stack.enter_context(_sandbox())
        ended = _run(stack, folder / "workers.log", look)
    out.print(f"done in {monotonic() - started:.1f} s; nothing is left running", highlight=False)
    return 0 if ended else 1


def _run(stack: ExitStack, log: Path, look: Callable[[], None]) -> bool:
    import pipeline.actors  # noqa: F401  declares the workflows
    from pipeline import engine
    from pipeline.worker.prepare import upgrade

    upgrade(settings.get())
    supervisor = Supervisor(
        programs(2, 8, with_sandbox=False, log=log), say=lambda line: out.print(f"  [dim]{line}[/dim]")
    )
    stack.callback(supervisor.stop)
    supervisor.start()
    with engine().begin() as connection:
        for act in ACTS:
            act.begin(connection, os.environ["PIPELINE_SANDBOX_URL"])
    _watch()
    look()
    with engine().connect() as connection:
        for act in ACTS:
            out.print(results(connection, act, out.width))
        return int(connection.execute(BAD).scalar_one()) == 0


def _watch() -> None:
    """Progress until all are final; on the way a worker is killed, to show that nothing is lost."""
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    killed, deadline = False, monotonic() + DEADLINE
    with Progress(*columns, console=out) as progress:
        bars = {act: progress.add_task(act.workflows[0], total=None) for act in ACTS}
        while monotonic() < deadline:
            scheduled, rows = _meanwhile(progress), _counts()
            for act, bar in bars.items():
                total, done = (sum(rows.get(name, (0, 0))[part] for name in act.workflows) for part in (0, 1))
                progress.update(bar, total=total, completed=done)
            total, done = (sum(row[part] for row in rows.values()) for part in (0, 1))
            if done == total and not scheduled:
                return
            if not killed and done >= total // 4:
                killed = _kill_one(progress)
            sleep(0.1)


def _meanwhile(progress: Progress) -> bool:
    """Let people act. True while a schedule may bring another job."""
    from pipeline import engine

    with engine().begin() as connection:
        for line in [line for act in ACTS for line in act.meanwhile(connection)]:
            progress.console.print(f"  {line}", highlight=False)
        return int(connection.execute(SCHEDULED).scalar_one()) > 0


def _counts() -> dict[str, tuple[int, int]]:
    """All and finished jobs by workflow; one snapshot, so that a callback is never overlooked between two jobs."""
    from pipeline import engine

    with engine().connect() as connection:
        return {name: (total, done) for name, total, done in connection.execute(ALL)}


def _kill_one(progress: Progress) -> bool:
    from pipeline.store import inspect

    busy = [worker for worker in inspect.workers() if worker["state"] == "alive" and worker["running"]]
    if not busy:
        return False
    victim = max(busy, key=lambda worker: int(worker["running"]))
    progress.console.print(
        f"  kill -9 {victim['pid']}: a worker dies with {victim['running']} jobs in hand", highlight=False
    )
    os.kill(victim["pid"], signal.SIGKILL)
    return True


@contextmanager
def _sandbox() -> Iterator[None]:
    from sandbox import running_sandbox

    with running_sandbox() as sandbox:
        os.environ["PIPELINE_SANDBOX_URL"] = sandbox.url
        yield


if __name__ == "__main__":
    sys.exit(main())
