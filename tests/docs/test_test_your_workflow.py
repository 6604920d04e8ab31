"""docs/howto/test-your-workflow.md: the tutorial's workflow with the page's tests, in memory and on real servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.dev.services import Servers
from tests.docs.blocks import blocks
from tests.place import ROOT

PAGE, TUTORIAL = ROOT / "docs/howto/test-your-workflow.md", ROOT / "docs/tutorial.md"
# Servers take longer to start than all that is tested here: those of this run will do.
SHARED = """

@pytest.fixture(scope="session")
def pipeline_private_servers():
    from pathlib import Path
    from pipeline.dev import services
    return services.start(Path({folder!r}))
"""

# Neither other processes of the machine nor its disk have a part in it.
MEASURED = """

import time

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before = time.process_time()
    try:
        return (yield)
    finally:
        with open("seconds", "a") as out:
            print(time.process_time() - before, file=out)
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A folder with the files of both pages."""
    for block in [*blocks(TUTORIAL), *blocks(PAGE)]:
        if block.kind == "python" and (name := re.match(r"# (\w+\.py)\n", block.text)):
            (tmp_path / name[1]).write_text(block.text)
    return tmp_path


def add(folder: Path, code: str) -> None:
    """To the page's conftest.py."""
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(code)


def typed(folder: Path, *arguments: str) -> str:
    """What pytest says to whoever types this there; the plugin is found by its entry point."""
    told = {name: value for name, value in os.environ.items() if not name.startswith(("PIPELINE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", *arguments, "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=folder, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def commands() -> list[list[str]]:
    """As the page says them."""
    lines = [line for block in blocks(PAGE) if block.kind == "sh" for line in block.text.splitlines()]
    return [line.partition("#")[0].removeprefix("python -m pytest -q").split() for line in lines]


@pytest.mark.timeout(300)
def test_the_page_s_tests_pass_in_memory_in_less_than_a_second(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A retry, five minutes and a kill; the time is printed."""
    add(page, MEASURED)
    said = typed(page, *commands()[0])
    assert "2 passed" in said
    seconds = [float(line) for line in (page / "seconds").read_text().split()]
    with capsys.disabled():
        print(
            f"\ntest-your-workflow: the tutorial's workflow tested whole in memory in {sum(seconds):.2f} s of computing"
        )
    assert len(seconds) == 2 and sum(seconds) < 1


def test_the_waits_on_the_page_are_waited_for_in_memory(page: Path) -> None:
    """By the clock of the run; the workflow is in the test's own module."""
    assert "2 passed" in typed(page, "test_waits.py")


@pytest.mark.timeout(600)
def test_the_same_tests_pass_on_real_servers(page: Path, servers: Servers, servers_folder: Path) -> None:
    """With a worker that is really killed."""
    add(page, SHARED.format(folder=str(servers_folder)))
    assert "4 passed" in typed(page, *commands()[1], "test_waits.py")


def test_both_ways_to_say_it_are_on_the_page() -> None:
    assert commands() == [["test_whole.py"], ["--pipeline-servers", "test_whole.py"]]
