"""``script/pictures``: runs the demo and takes pictures of what really happens: its jobs, and a kill in a terminal."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from playwright.sync_api import sync_playwright
from sqlalchemy import text

from script import demo_run
from script.terminal import Session

DOCS = Path(__file__).parents[1] / "docs"
CHROMIUM = os.environ.get("PIPELINE_WEBSITE_BROWSER", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
# Who runs the job, once it has kept a few steps.
HOLDER = text("""
    SELECT w.pid FROM pipeline.jobs j JOIN pipeline.workers w ON w.id = j.locked_by
    WHERE j.id = :job AND j.status = 'running' AND (SELECT count(*) FROM pipeline.steps s WHERE s.job_id = j.id) > 2""")
PATIENCE = 60.0


def main() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    os.environ["PIPELINE_API_PORT"] = port
    workflows = [*demo_run.WORKFLOWS, "script.recorded"]
    return demo_run.main(lambda: look(f"http://127.0.0.1:{port}"), workflows)


def look(address: str) -> None:
    """A job whose worker dies: what the terminal says, and what the dashboard shows of it."""
    session = _record()
    said = session.svg("A worker is killed with kill -9; another one continues its job at the next step")
    (DOCS / "killed-terminal.svg").write_text(said, encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 760}, base_url=address)
        page.goto(f"/jobs/{session.variables['JOB']}")
        page.get_by_text("page-8").first.wait_for()
        page.screenshot(path=DOCS / "killed-job.png")
        browser.close()


def _record() -> Session:
    """Eight steps of a second each; whoever runs them dies in the middle."""
    session = Session(Path.cwd())
    session.variables["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    session.say("a report of eight pages, a second each; every page is a step")
    session.run("pipeline submit report customer=Ada", keep="JOB")
    job = session.variables["JOB"]
    holder = _until(HOLDER, job=job)
    session.say(f"process {holder} has some of them")
    session.run(f"kill -9 {holder}")
    session.run('pipeline result "$JOB" --wait 60')
    session.run('pipeline status "$JOB"')
    return session


def _until(query: Any, **values: object) -> Any:
    deadline = monotonic() + PATIENCE
    while (found := _asked(query, **values)) is None:
        if monotonic() > deadline:
            raise TimeoutError(str(query))
        sleep(0.1)
    return found


def _asked(query: Any, **values: object) -> Any:
    from pipeline import engine

    with engine().connect() as connection:
        return connection.execute(query, values).scalar()


if __name__ == "__main__":
    sys.exit(main())
