"""docs/howto/submit.md, run as it stands: each example submits in a transaction of its library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = ROOT / "docs/howto/submit.md"
WEB = """
import asyncio
import httpx
from shop.web import app

async def main() -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as shop:
        print((await shop.post("/orders", json={"item": "a lamp"})).json()["job"])
        refused = await shop.post("/orders", json={"item": "x" * 70_000})
        assert refused.status_code == 422 and "send a reference" in refused.text, refused.text

asyncio.run(main())
"""
DJANGO = """
import os
import django
from django.conf import settings
from django.urls import path
from psycopg.conninfo import conninfo_to_dict

given = conninfo_to_dict(os.environ["DATABASE_URL"])
there = {"NAME": given["dbname"], "USER": given["user"], "PASSWORD": given["password"]}
database = {"ENGINE": "django.db.backends.postgresql", **there, "HOST": given["host"], "PORT": given["port"]}
settings.configure(DATABASES={"default": database}, INSTALLED_APPS=["shop"], ROOT_URLCONF=__name__)
django.setup()
from shop.views import order
urlpatterns = [path("orders", order)]
from django.test import Client
print(Client(headers={"host": "localhost"}).post("/orders", {"item": "a lamp"}).json()["job"])
"""
MODELS = """
from django.db import models

class Order(models.Model):
    item = models.TextField()

    class Meta:
        db_table = "orders"
"""
DRIVERS = """
import asyncio
import os
import asyncpg
from shop.drivers import with_asyncpg, with_psycopg

async def main() -> None:
    await with_psycopg(os.environ["DATABASE_URL"])
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=1) as pool:
        await with_asyncpg(pool)

asyncio.run(main())
"""
WAITING = """
import asyncio
import os
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from shop.waiting import pack_now, pack_soon, progress
from shop.workflows import orders

url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
print(pack_now(create_engine(url), "a lamp"))
print(asyncio.run(pack_soon(create_async_engine(url), "a chair")))
print(list(progress(str(orders.submit({"item": "a table"}))))[-1])
"""


@pytest.fixture
def shop(place: Place) -> Path:
    """A folder with the page's files, each named by its first line; its workflow is registered, its table is there."""
    folder = place.folder / "app"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop/models.py").write_text(MODELS)
    for block in blocks(PAGE):
        if named := re.match(r"# (shop/\S+)\n", block.text):
            (folder / named[1]).write_text(block.text)
    place.db.execute("CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL)")
    run(place, folder, "-m", "pipeline.front.cli.main", "migrate")
    return folder


def run(place: Place, folder: Path, *words: str) -> str:
    environment = {**os.environ, **place.environment(), "PIPELINE_WORKFLOWS": "shop.workflows", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def stored(place: Place) -> tuple[list[str], list[tuple[str, str]]]:
    """Items of the orders; items of the jobs, with their states."""
    orders = [row["item"] for row in place.rows("SELECT item FROM orders ORDER BY id")]
    jobs = place.rows("SELECT body->>'item' AS item, status::text FROM pipeline.jobs ORDER BY item")
    return orders, [(row["item"], row["status"]) for row in jobs]


def script(folder: Path, text: str) -> str:
    (folder / "check.py").write_text(text)
    return "check.py"


@pytest.mark.parametrize("text", [WEB, DJANGO], ids=["FastAPI", "Django"])
def test_an_order_and_its_job_are_one_transaction(place: Place, shop: Path, text: str) -> None:
    """What was refused left neither."""
    job = run(place, shop, script(shop, text))
    assert stored(place) == (["a lamp"], [("a lamp", "pending")])
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE id = %s", job) == 1


def test_the_drivers_examples_work(place: Place, shop: Path) -> None:
    """psycopg's and asyncpg's."""
    run(place, shop, script(shop, DRIVERS))
    jobs = [("a chair", "pending"), ("a lamp", "pending"), ("a table", "cancelled")]
    assert stored(place) == (["a lamp", "a chair"], jobs)


def test_the_results_are_waited_for(place: Place, shop: Path) -> None:
    """In a thread, on an event loop, and with progress."""
    place.worker(PIPELINE_WORKFLOWS="shop.workflows", PYTHONPATH=f"{ROOT}:{shop}")
    packed, soon, seen = run(place, shop, script(shop, WAITING)).splitlines()
    assert (packed, soon, seen.strip()) == ("a lamp", "a chair", "pack: succeeded")
