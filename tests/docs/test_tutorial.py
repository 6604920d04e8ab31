"""The tutorial, run as it stands: its files written, its commands typed into one shell, against real servers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from sandbox import running_sandbox
from tests.docs.blocks import Block, blocks
from tests.place import ROOT, Place

# What must be true before a block is typed, by its mark: as a rule, that all jobs so far have ended.
READY = {
    "": "SELECT count(*) = 0 FROM pipeline.jobs WHERE completed_at IS NULL",
    "up": "SELECT true",
    "runs": "SELECT count(*) = 1 FROM pipeline.jobs WHERE status = 'running' AND phase = 'read'",
    "crashed": """SELECT count(*) = 1 FROM pipeline.jobs j JOIN pipeline.attempts a ON a.job_id = j.id AND a.outcome = 'crashed'
        WHERE j.status = 'running' AND j.fence > a.fence""",
}
# The one thing typed otherwise than it is written: the sandbox's port, which may be taken.
SANDBOX = "http://127.0.0.1:8099"


class Reader:
    """Somebody who follows the page: one shell, and a second terminal for ``pipeline up``."""

    def __init__(self, place: Place, sandbox: str) -> None:
        self._place = place
        self._sandbox = sandbox
        self.port = _free_port()
        # Faster beats are the place's; the page's own variables are typed by the page.
        self._environment = {**os.environ, **place.environment(), "PIPELINE_API_PORT": str(self.port), "COLUMNS": "200"}
        self._environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the page's own tests need none, and start faster
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._log = (place.folder / "up.log").open("wb")
        self._shell = subprocess.Popen(
            ["bash", "-eo", "pipefail"],
            cwd=place.folder,
            env=self._environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._up: subprocess.Popen[bytes] | None = None

    def follow(self, block: Block) -> str:
        """Do what the block says, and return what the shell printed."""
        text = block.text.replace(SANDBOX, self._sandbox)
        if block.kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            assert name is not None, "the first line of a file names it"
            (self._place.folder / name[1]).write_text(text)
            return ""
        if block.mark == "up":
            self._start(text)
            return ""
        return self._type(text)

    def _type(self, text: str) -> str:
        assert self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.write(f"{text}\necho END-OF-BLOCK\n")
        self._shell.stdin.flush()
        said = ""
        while not said.endswith("END-OF-BLOCK\n"):
            line = self._shell.stdout.readline()
            assert line, f"the block failed:\n{text}\n{said}"
            said += line
        return said

    def _start(self, text: str) -> None:
        # The sandbox is the test's own, on a free port: its usual one may be taken on this machine.
        command = text.replace(" --sandbox", "").split()
        environment = {**self._environment, "PIPELINE_WORKFLOWS": "headlines"}
        self._up = subprocess.Popen(
            command, cwd=self._place.folder, env=environment, stdout=self._log, stderr=self._log, start_new_session=True
        )
        self._place.until(lambda: len(self._place.pids()) == 2, 40, f"two workers\n{self.log()}")

    def log(self) -> str:
        return (self._place.folder / "up.log").read_text()

    def leave(self) -> None:
        self._shell.kill()
        self._shell.wait()
        if self._up is not None:
            self._up.send_signal(signal.SIGINT)
            self._up.wait(60)


@pytest.fixture
def reader(place: Place) -> Iterator[Reader]:
    with running_sandbox() as sandbox:
        one = Reader(place, sandbox.url)
        yield one
        one.leave()


@pytest.mark.timeout(480)
def test_every_block_of_the_tutorial_works_as_written(place: Place, reader: Reader) -> None:
    """Files, commands, errors, kill -9, replay: in order, with what the page says must come of them."""
    page = [block for block in blocks(ROOT / "docs/tutorial.md") if block.mark != "setup"]
    said: dict[str, str] = {}
    for block in page:
        place.until(partial(place.count, READY[block.mark]), 30, f"jobs before\n{block.text}\n{reader.log()}")
        said[block.text] = reader.follow(block)
    place.until(lambda: place.count(READY[""]), 30, "all jobs to end")

    def printed(command: str) -> str:
        return "".join(text for typed, text in said.items() if command in typed)

    assert "2 passed" in printed("pytest")
    assert printed("status $RETRIED").count("retried") == 2
    assert "2 failed jobs" in printed("dead list") and "the body is wrong" in printed("dead list")
    assert "crashed" in printed("status $SLOW")
    kept = sorted(int(row["url"].split("/")[4]) for row in place.rows("SELECT url FROM headlines"))
    assert kept == [7, 8, 9, 10, 11], "each page once"
    states = place.rows("SELECT status, count(*) AS n FROM pipeline.jobs GROUP BY 1 ORDER BY 1")
    assert [(row["status"], row["n"]) for row in states] == [("cancelled", 1), ("succeeded", 5)]
    assert f"http://127.0.0.1:{reader.port}/" in reader.log()
    assert httpx.get(f"http://127.0.0.1:{reader.port}/").status_code == 200


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
