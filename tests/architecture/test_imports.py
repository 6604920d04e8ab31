"""Imports go one way; the layers are in .importlinter."""

from __future__ import annotations

import subprocess
import sys

from tests.architecture.house import ROOT


def test_imports_go_one_way_only() -> None:
    """What import-linter says is printed when it does not agree."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    run = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
