"""docs/howto/extend.md, run as it stands: its files written, then used by a worker, the command, the API and a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.docs.blocks import blocks
from tests.front.dashboard.conftest import OpenPage, browser, open_page  # noqa: F401  the same real browser
from tests.place import ROOT, Place

PAGE = ROOT / "docs/howto/extend.md"
PIPELINE = [sys.executable, "-m", "pipeline.front.cli.main"]
WORKER = [sys.executable, "-m", "dramatiq", "pipeline.actors", "--processes", "1", "--threads", "2"]


@pytest.fixture
def shop(place: Place) -> Path:
    """A folder with the page's files, each named by its first line."""
    folder = place.folder / "app"
    for block in blocks(PAGE):
        if named := re.match(r"(?:#|//) (shop/\S+)\n", block.text):
            file = folder / named[1]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
    return folder


@pytest.fixture
def environment(place: Place) -> dict[str, str]:
    return {**os.environ, **place.environment(), "PIPELINE_WORKFLOWS": "shop.workflows"}


@contextmanager
def running(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """What it prints is in the file."""
    log = folder / f"{command[2]}.log"
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log.open("wb"), stderr=subprocess.STDOUT)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


def test_every_part_of_the_example_works(
    place: Place,
    shop: Path,
    environment: dict[str, str],
    open_page: OpenPage,  # noqa: F811  the fixture
) -> None:
    """Migration, route, command, view, metric and output, in an application that is nothing but this page."""

    def say(*words: str) -> str:
        done = subprocess.run(
            [*PIPELINE, *words], cwd=shop, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    say("migrate")
    job = say("submit", "orders", '{"item": "a lamp"}')
    with running(WORKER, shop, environment), running([*PIPELINE, "api", "--port", "0"], shop, environment) as log:
        place.until(lambda: place.count("SELECT count(*) FROM shop_orders") == 1, 40, "the order")
        assert say("unpaid") == "1"
        address = place.until(lambda: re.search(r"http://127\.0\.0\.1:\d+", log.read_text()), 40, "the API")[0]
        with httpx.Client(base_url=address, timeout=20) as api:
            assert [order["item"] for order in api.get("/v1/orders").json()] == ["a lamp"]
            assert api.get(f"/v1/jobs/{job}").json()["output"] == {"item": "a lamp"}
            assert "shop_unpaid_orders 1.0" in api.get("/metrics").text
        page = open_page(f"{address}/")
        page.get_by_role("link", name="Orders", exact=True).click()
        expect(page.get_by_role("cell", name="a lamp")).to_be_visible()
        expect(page.get_by_role("link", name=re.compile("Projects|Sources"))).to_have_count(0)


def test_what_the_page_says_a_view_can_import_is_there() -> None:
    """Each name in its table is exported by the module beside it."""
    rows = re.findall(r"^\| `/static/(\w+\.js)` \| (.+?)(?:: .*)? \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 4
    for file, names in rows:
        text = (ROOT / "pipeline/front/dashboard/static" / file).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^export (?:async )?(?:function|const) {name}\b", text, re.MULTILINE), (file, name)
