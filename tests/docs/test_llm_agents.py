"""docs/howto/llm-agents.md: the agent with the page's own tests, in memory; its statement and its rate, in PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from pipeline.store import database
from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/llm-agents.md")


def test_the_page_s_tests_pass(tmp_path: Path) -> None:
    """As whoever reads it would run them."""
    for block in PAGE:
        if block.kind == "python" and (name := re.match(r"# (\w+\.py)\n", block.text)):
            (tmp_path / name[1]).write_text(block.text)
    told = {name: value for name, value in os.environ.items() if not name.startswith(("PIPELINE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py"]
    done = subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_its_statement_runs_and_its_rate_is_set(place: Place) -> None:
    [statement] = [block.text for block in PAGE if block.kind == "sql"]
    assert place.rows(statement.replace("%", "%%")) == []
    [rate] = [block.text for block in PAGE if block.text.startswith("# limits.py")]
    limits: dict[str, Any] = {}
    exec(compile(rate, "limits.py", "exec", dont_inherit=True), limits)
    limits["three_calls_a_second"](database.engine())
    assert place.rows("SELECT rate FROM pipeline.rate_limits WHERE name = 'model'") == [{"rate": 3}]
