"""docs/howto/waits.md, run as it stands, with a worker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from tests.commands import pipeline_in
from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = ROOT / "docs/howto/waits.md"
MODULES = "shop.refunds,shop.reminders,shop.asking"
SECRET = {"PIPELINE_EVENT_SECRET": "s" * 40}


@pytest.fixture
def shop(place: Place) -> Path:
    """A folder with the page's files, each named by its first line, and a worker that has them."""
    folder = place.folder / "app"
    (folder / "shop").mkdir(parents=True)
    for block in blocks(PAGE):
        if named := re.match(r"# (shop/\S+)\n", block.text):
            (folder / named[1]).write_text(block.text)
    place.db.execute("CREATE TABLE mails (text text)")
    pipeline(place, folder, "migrate")
    place.worker(PIPELINE_WORKFLOWS=MODULES, PYTHONPATH=f"{ROOT}:{folder}", PIPELINE_EVENT_SECRET="s" * 40)
    return folder


def run(place: Place, folder: Path, *words: str) -> str:
    """A Python of the application."""
    told = {**os.environ, **settings(place)}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def settings(place: Place) -> dict[str, str]:
    return {**place.environment(), **SECRET, "PIPELINE_WORKFLOWS": MODULES, "PYTHONPATH": str(ROOT)}


def pipeline(place: Place, folder: Path, *words: str) -> str:
    done = pipeline_in(folder, *words, **settings(place))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def asked(place: Place, job: str) -> None:
    """The job waits for somebody."""
    waits = "SELECT count(*) FROM pipeline.outbox WHERE job_id = %s AND waits_for LIKE 'event:%%'"
    place.until(lambda: place.count(waits, job) == 1, 30, "the wait for a person")


def test_the_refund_goes_each_of_its_ways(place: Place, shop: Path) -> None:
    """Without a question; with a yes from an application and from the command line; with a no from SQL."""
    good = pipeline(place, shop, "submit", "refunds", '{"items": ["a chair", "a table"]}')
    assert pipeline(place, shop, "result", good, "--wait", "30") == "20"
    broken = ["submit", "refunds", '{"items": ["a chair", "a broken lamp"]}']
    jobs = [pipeline(place, shop, *broken) for _ in range(3)]
    for job in jobs:
        asked(place, job)
    deciding = (
        "import os; from sqlalchemy import create_engine; from shop.deciding import decided; "
        "url = os.environ['DATABASE_URL'].replace('postgresql://', 'postgresql+psycopg://'); "
        f"print(decided(create_engine(url), {jobs[0]!r}, True))"
    )
    assert run(place, shop, "-c", deciding) == "delivered"
    [words] = [line.split() for line in _lines("sh") if line.startswith("pipeline signal")]
    assert pipeline(place, shop, *(jobs[1] if word == "$JOB" else word for word in words[1:])).startswith("delivered")
    [sql] = _lines("sql")
    no = re.sub(r"'[0-9a-f-]{36}'", "%s", sql).replace("true", "false")
    assert place.rows(no, jobs[2]) == [{"signal": "delivered"}]
    results = [pipeline(place, shop, "result", job, "--wait", "30") for job in jobs]
    assert results == ["10", "10", "0"]


def test_the_reminder_sleeps_and_each_step_is_done_once(place: Place, shop: Path) -> None:
    job = pipeline(place, shop, "submit", "reminders")
    assert "sent: please pay soon" in pipeline(place, shop, "result", job, "--wait", "30")
    outcomes = [one["outcome"] for one in place.attempts(UUID(job))]
    assert outcomes == ["snoozed", "succeeded"]


def test_the_link_of_the_mail_answers_the_question(place: Place, shop: Path) -> None:
    """The server's address is that of the settings; here it is another one's."""
    job = pipeline(place, shop, "submit", "questions")
    asked(place, job)
    [mail] = place.rows("SELECT text FROM mails")
    yes, no = re.findall(r"http://127.0.0.1:8080(/v1/events/\S+)", mail["text"])
    log = place.folder / "api.log"
    with log.open("w") as stderr:
        command = [sys.executable, "-m", "pipeline.front.cli.main", "api", "--port", "0"]
        serving = subprocess.Popen(command, env={**os.environ, **place.environment(), **SECRET}, stderr=stderr)
    try:
        place.until(lambda: "running on http" in log.read_text(), 30, "the server")
        address = re.findall(r"running on (http\S+)", log.read_text())[0]
        assert httpx.post(address + no).status_code == 200
        assert httpx.post(address + yes).status_code == 409
    finally:
        serving.terminate()
        serving.wait(20)
    assert pipeline(place, shop, "result", job, "--wait", "30") == '"no"'


def _lines(kind: str) -> list[str]:
    return [line for block in blocks(PAGE) if block.kind == kind for line in block.text.splitlines()]
