"""The README's own workflow, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import text

from pipeline.store import database
from sandbox import running_sandbox
from tests.place import ROOT, Place


def test_the_workflow_in_the_readme_works_as_written(place: Place, tmp_path: Path) -> None:
    """Fewer than 40 lines, put into a file, named in PIPELINE_WORKFLOWS, submitted by SQL."""
    [block] = [
        b for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S) if "Workflow(" in b
    ]
    assert len(block.splitlines()) < 40
    (tmp_path / "words.py").write_text(block)
    place.db.execute("CREATE TABLE words (job uuid PRIMARY KEY, most text NOT NULL)")
    with running_sandbox() as sandbox:
        place.worker(threads=2, PIPELINE_WORKFLOWS="words", PYTHONPATH=f"{ROOT}:{tmp_path}")
        with database.engine().begin() as connection:
            job = connection.execute(
                text("SELECT pipeline.submit('words', jsonb_build_object('url', CAST(:url AS text)))"),
                {"url": f"{sandbox.url}/sites/1/"},
            ).scalar_one()
        [row] = place.finished(job)
    assert row["status"] == "succeeded", row["error_message"]
    assert place.count("SELECT count(*) FROM words") == 1
