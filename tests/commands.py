"""The ``pipeline`` command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.place import ROOT, Place


def pipeline(place: Place | None, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it on the test's own servers, if it has some."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline.front.cli.main", *words],
        cwd=ROOT,
        env={**os.environ, **(place.environment() if place else {}), **environment},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
