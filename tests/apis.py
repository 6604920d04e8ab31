"""A real ``pipeline api`` in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.place import ROOT, Place

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def running_api(place: Place, **settings: str) -> Iterator[httpx.Client]:
    """A client of it, which waits for a minute and more."""
    log = place.folder / f"api-{len(list(place.folder.glob('api-*')))}.log"
    command = [sys.executable, "-m", "pipeline.front.cli.main", "api", "--port", "0"]
    environment = {**os.environ, **place.environment(), **settings}
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said)
    try:
        place.until(lambda: ADDRESS.search(log.read_text()) is not None, 30, "the API to listen")
        found = ADDRESS.search(log.read_text())
        assert found is not None
        with httpx.Client(base_url=found[0], timeout=90) as client:
            yield client
    finally:
        process.terminate()
        process.wait(15)
