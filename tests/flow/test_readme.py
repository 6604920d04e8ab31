"""The README's own workflows, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from uuid import UUID

import pytest

from tests.commands import pipeline
from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "README.md")
PAGES = {"/": '<a href="/one"><a href="/two">', "/one": "<title>One</title>", "/two": "<title>Two</title>"}
ORDER = """
import os, sys
from sqlalchemy import create_engine
from ordering import order
print(order(create_engine(os.environ["DATABASE_URL"].replace("://", "+psycopg://", 1)), "us", sys.argv[1]))
"""


class Site(BaseHTTPRequestHandler):
    """Two pages, and what links to them; ``/broken`` links to one that is not there."""

    def do_GET(self) -> None:
        page = f'{PAGES["/"]}<a href="/three">' if self.path == "/broken" else PAGES.get(self.path)
        self.send_response(404 if page is None else 200)
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def reader(place: Place) -> dict[str, str]:
    """Whoever has put the README's files into a folder and started a worker there; their environment."""
    for block in PAGE:
        if block.kind == "python" and (name := re.match(r"# (\w+\.py)\n", block.text)):
            (place.folder / name[1]).write_text(block.text)
        if block.kind == "sql":
            place.db.execute(block.text.encode())
    theirs = {"PIPELINE_WORKFLOWS": "welcome,audits", "PYTHONPATH": f"{ROOT}:{place.folder}"}
    place.worker(threads=2, settings=theirs)
    return {**os.environ, **place.environment(), **theirs}


def test_the_workflows_of_the_readme_work_as_written(place: Place, reader: dict[str, str]) -> None:
    """The first one by its commands; the audit from an application's transaction, and with a person's approval."""
    lines = [line.partition("#")[0].split() for block in PAGE if block.kind == "sh" for line in block.text.splitlines()]
    [submit] = [line[1:] for line in lines if line[:2] == ["JOB=$(pipeline", "submit"]]
    job = pipeline(place, *" ".join(submit).removesuffix(")").split(), **reader).stdout.strip()
    assert pipeline(place, "result", job, "--wait", "30", **reader).stdout.strip() == '"sent: Hello Ada!"'

    with site() as address:
        command = [sys.executable, "-c", ORDER, address]
        done = subprocess.run(command, env=reader, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "customer='us' titles=['One', 'Two'] broken=0 approved_by=None", done.stderr
        told = pipeline(place, "submit", "audit", "customer=them", f"url={address}/broken", **reader)
        asked = "SELECT count(*) FROM pipeline.outbox WHERE waits_for = 'event:approved'"
        place.until(lambda: place.count(asked) == 1, 30, "the wait for a person")
        assert pipeline(place, "signal", told.stdout.strip(), "approved", "by=Ada", **reader).returncode == 0
        place.finished(UUID(told.stdout.strip()))
    rows = place.rows("SELECT customer, broken FROM reports ORDER BY broken")
    assert [tuple(row.values()) for row in rows] == [("us", 0), ("them", 1)]
