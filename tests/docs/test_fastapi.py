"""docs/howto/fastapi.md, run as it stands, with a worker."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/fastapi.md")
CUSTOMER = """
import asyncio
import httpx
from shop.web import app

async def main() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as shop:
        placed = await shop.post("/orders", json={"item": "lamps", "amount": 21})
        packed = await shop.get(placed.headers["location"] + "?wait=30")
        assert (packed.status_code, packed.json()) == (200, {"item": "lamps", "boxes": 3}), packed.text

        many = (await shop.post("/orders", json={"item": "chairs", "amount": 200})).headers["location"]
        while (asked := await shop.get(many + "?wait=0.5")).json()["waits_for"] != "event":
            assert asked.status_code == 202
        told = await shop.post(many + "/decision", json={"yes": False})
        assert told.json() == {"answer": "delivered"}, told.text
        assert (await shop.get(many + "?wait=30")).json() == {"item": "chairs", "boxes": 0}

        gone = (await shop.post("/orders", json={"item": "beds", "amount": 300})).headers["location"]
        assert (await shop.delete(gone)).json() == {"cancelled": True}
        ended = await shop.get(gone)
        assert ended.status_code == 409 and "changed their mind" in ended.text

        assert (await shop.post("/orders", json={"item": "beds", "amount": 0})).status_code == 422
        assert (await shop.get("/orders/01a1e35a-acab-720d-861a-d34a819014b2")).status_code == 404

asyncio.run(main())
"""


def test_an_order_is_placed_waited_for_decided_and_cancelled(place: Place) -> None:
    """Each order is a row of the shop and a job, or neither."""
    (place.folder / "shop").mkdir()
    for block in PAGE:
        if named := re.match(r"# (shop/\S+)\n", block.text):
            (place.folder / named[1]).write_text(block.text)
    place.db.execute("CREATE TABLE orders (job uuid PRIMARY KEY, item text NOT NULL)")
    theirs = {"PIPELINE_WORKFLOWS": "shop.jobs", "PYTHONPATH": f"{ROOT}:{place.folder}"}
    place.worker(threads=2, settings=theirs)
    environment = {**os.environ, **place.environment(), **theirs}
    command = [sys.executable, "-c", CUSTOMER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    assert place.count("SELECT count(*) FROM orders o JOIN pipeline.jobs j ON j.id = o.job AND j.tags = '{web}'") == 3
