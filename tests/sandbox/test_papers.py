"""The registry's PDFs."""

from __future__ import annotations

import subprocess
import sys

from tests.place import ROOT

AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from sandbox import papers
numbers = ["RF-1937-0118", "RF-1938-0042", "BAD-TRUNCATED", "RF-1939-0001"] * 2
with ThreadPoolExecutor(8) as pool:
    files = list(pool.map(papers.pdf, numbers))
assert files[:4] == files[4:]
"""


def test_documents_asked_for_at_once_are_made_one_after_the_other() -> None:
    """The renderer knows no threads: two at a time would end the process."""
    ended = subprocess.run([sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
