"""docs/howto/django.md: its files in a project of their own, with a worker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.docs.blocks import blocks
from tests.place import ROOT, Place

PAGE = blocks(ROOT / "docs/howto/django.md")
SETTINGS = """
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", **{there!r}}}}}
INSTALLED_APPS = ["shop"]
ROOT_URLCONF = "project"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
MANAGE = "import sys; from django.core.management import execute_from_command_line; execute_from_command_line(sys.argv)"
URLS = "from django.urls import path\nfrom shop.views import order\nurlpatterns = [path('orders', order)]\n"
# No process of Django's own for each of these: a second of imports each.
VISIT = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
from django.test import Client
print(Client(headers={"host": "localhost"}).post("/orders", {"item": "a lamp"}).json()["job"])
from shop.models import Order
Order.objects.create(item="a chair")
call_command("pack_all")
call_command("pack_all")
"""


@pytest.fixture
def project(place: Place) -> dict[str, str]:
    """The page's files; the environment of its processes."""
    given = conninfo_to_dict(place.database_url)
    there = {"NAME": given["dbname"], "USER": given["user"], "PASSWORD": given["password"]}
    there |= {"HOST": given["host"], "PORT": given["port"]}
    files = {"settings.py": SETTINGS.format(there=there), "project.py": URLS, "manage.py": MANAGE}
    files |= {named[1]: block.text for block in PAGE if (named := re.match(r"# (shop/\S+)\n", block.text))}
    for name, text in files.items():
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).write_text(text)
    for package in ("shop", "shop/management", "shop/management/commands"):
        (place.folder / package / "__init__.py").touch()
    return {**place.environment(), "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": f"{ROOT}:{place.folder}"}


def django(folder: Path, settings: dict[str, str], *words: str) -> str:
    environment = {**os.environ, **settings}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_orders_and_their_jobs_are_one_transaction_and_phases_use_the_orm(
    place: Place, project: dict[str, str]
) -> None:
    """From the view and from the command; the engine's command knows the project's database and workflows."""
    place.worker(threads=2, settings={**project, "PIPELINE_WORKFLOWS": "shop.jobs"})
    job, *packed = django(place.folder, project, "-c", VISIT).splitlines()
    assert [line.split()[1] for line in packed] == ["jobs", "jobs"], "how many depends on the worker's pace"
    place.until(lambda: place.count("SELECT count(*) FROM shop_order WHERE state = 'packed'") == 2, 30, "both orders")
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 2, "by their keys"

    chosen = {name: value for name, value in project.items() if name not in ("DATABASE_URL", "PIPELINE_WORKFLOWS")}
    said = django(place.folder, chosen, "manage.py", "pipeline", "result", job, "--wait", "30")
    assert said == '"packed a lamp"'
