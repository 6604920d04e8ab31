"""What the tests themselves cost: each of a thousand processes imports what its test has chosen."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.place import ROOT

LOADED = """
import sys
from pipeline import actors
from pipeline.declare.registry import workflows
assert workflows()
print(*(phase.spec.queue for workflow in workflows().values() for phase in workflow.phases if phase.spec.isolated))
print(*sorted(name for name in ("actors", "db", "fastapi", "httpx", "lxml") if name in sys.modules))
"""


def test_a_worker_of_a_test_starts_no_fork_server_and_no_application_unless_it_is_asked_to() -> None:
    """Isolated phases are in tests/isolated_workflows.py, and tests/actors is about the application."""
    environment = {**os.environ, "PIPELINE_WORKFLOWS": "tests.workflows", "TEST_RECORD": os.devnull}
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n\n"
