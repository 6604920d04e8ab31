"""docs/howto/from-dramatiq.md: an application's actors on its own broker, beside workflows, on real servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/from-dramatiq.md")
# The old worker, in this process: it mails, and hands over what was sent before the move, twice.
OLD = """
import dramatiq
from app.actors import broker, mail
from app.handing_over import charge
for _ in range(2):
    charge.send(18, "bob")
mail.send("carol")
worker = dramatiq.Worker(broker, worker_timeout=50, worker_threads=2)
worker.start()
for queue in ("charges", "mails"):
    broker.join(queue, timeout=20_000)
worker.join()
worker.stop()
"""


@pytest.fixture
def app(place: Place) -> Path:
    """The page's files, and a worker that has its workflows."""
    (place.folder / "app").mkdir()
    for block in PAGE:
        if named := re.match(r"# (app/\S+)\n", block.text):
            (place.folder / named[1]).write_text(block.text)
    place.worker(threads=2, PIPELINE_WORKFLOWS="app.jobs,app.moved", PYTHONPATH=f"{ROOT}:{place.folder}")
    return place.folder


def test_actors_and_workflows_run_beside_each_other_and_what_was_sent_is_handed_over_once(
    place: Place, app: Path
) -> None:
    job = UUID(str(place.rows("""SELECT pipeline.submit('charges', '{"order": 17, "to": "ada"}') AS id""")[0]["id"]))
    [charged] = place.finished(job)
    assert charged["result"] == {"charge": "charged 17"}, charged["error_message"]

    environment = {**os.environ, **place.environment(), "PYTHONPATH": f"{ROOT}:{app}"}
    done = subprocess.run([sys.executable, "-c", OLD], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["mail to ada", "mail to carol"]
    [paid] = place.rows("SELECT id FROM pipeline.jobs WHERE workflow = 'payments'")
    [payment] = place.finished(paid["id"])
    assert payment["result"] == {"pay": "paid 18 for bob"}
