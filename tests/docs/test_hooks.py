"""docs/howto/hooks.md, run as it stands, with a worker and a receiver."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from pipeline import JobFailed, Workflow
from pipeline.declare import registry
from pipeline.declare.registry import workflows
from pipeline.webhooks import webhook
from pipeline.webhooks.signature import decode_secret
from tests.commands import pipeline
from tests.docs.blocks import blocks
from tests.place import ROOT, Place
from tests.receiver import SECRET, Receiver, receiving

PAGE = ROOT / "docs/howto/hooks.md"
MODULES = {"PIPELINE_WORKFLOWS": "shop.audits,shop.orders,shop.visits"}
ADDRESS = "https://shop.example.org/hooks/orders"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def shop(place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's files, each named by its first line, in this process and in a worker; its address is the receiver's."""
    folder = place.folder / "app"
    (folder / "shop").mkdir(parents=True)
    # A package goes before whatever else is called so.
    (folder / "shop/__init__.py").touch()
    for block in blocks(PAGE):
        if named := re.match(r"# (shop/\S+)\n", block.text):
            (folder / named[1]).write_text(block.text.replace(ADDRESS, receiver.url))
    path = {"PYTHONPATH": f"{ROOT}:{folder}"}
    done = pipeline(place, "migrate", **MODULES, **path)
    assert done.returncode == 0, done.stderr
    place.worker(settings={**MODULES, **receiver.settings, **path, "PIPELINE_BACKOFF_SCALE": "0.01"})
    monkeypatch.setattr(registry, "_workflows", dict(workflows()))
    monkeypatch.syspath_prepend(str(folder))
    # Other pages and tests have a shop, too.
    other = _forget_shops()
    yield folder
    _forget_shops()
    sys.modules.update(other)


def _forget_shops() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "shop"}


def the(name: str) -> Workflow[dict[str, object], object]:
    """A workflow of the page."""
    module, _, attribute = name.partition(":")
    found: Workflow[dict[str, object], object] = getattr(importlib.import_module(f"shop.{module}"), attribute)
    return found


def test_the_hooks_of_the_page_tell_the_team(place: Place, shop: Path) -> None:
    """A failure and a cancel; a success has none."""
    audit = the("audits:audit")
    audit.submit({"url": "x"}).result(timeout=30)
    with pytest.raises(JobFailed, match="nothing to look at"):
        audit.submit({}).result(timeout=30)
    assert audit.submit({"url": "x"}, due=datetime.now(UTC) + timedelta(hours=1)).cancel()
    hooks = "SELECT id FROM pipeline.jobs WHERE workflow = 'tell-the-team'"
    place.until(lambda: len(place.rows(hooks)) == 2, 20, "the hooks' jobs")
    told = place.finished(*(row["id"] for row in place.rows(hooks)))
    assert sorted(row["result"]["write"] for row in told) == ["night shift: audit failed", "support: audit cancelled"]


def test_the_webhooks_of_the_page_are_received_as_it_says(place: Place, shop: Path, receiver: Receiver) -> None:
    """By its own receiver: verified, and kept once."""
    the("orders:orders").submit({"amount": 5}).result(timeout=30)
    with pytest.raises(JobFailed):
        the("orders:orders").submit({}).result(timeout=60)
    tell, receiving = importlib.import_module("shop.orders").tell, importlib.import_module("shop.receiving")
    tell(receiver.url, 17)
    place.until(lambda: len(receiver.requests) == 3, 30, "three webhooks")
    answers = [receiving.receive(one.headers, one.body, SECRET) for one in receiver.requests * 2]
    assert {status for status, _ in answers} == {204} and len(receiving.seen) == 3
    payloads = {payload["type"]: payload for _, payload in answers}
    assert payloads["invoice.paid"]["data"] == {"invoice": 17}
    assert payloads["orders.failed"]["data"]["shop"] == "north"
    [shown] = [block.text for block in blocks(PAGE) if block.kind == "json"]
    succeeded = payloads["orders.succeeded"]
    assert set(re.findall(r'"(\w+)":', shown)) == {"amount", "paid", *succeeded, *succeeded["data"]}
    assert receiving.receive(receiver.requests[0].headers, b"{}", SECRET)[0] == 401


def test_what_is_around_the_page_s_phases_is_around_all(place: Place, shop: Path) -> None:
    job = the("visits:visits").submit({"customer": "Ada"})
    job.result(timeout=30)
    assert place.job(job.id)["result"] == dict.fromkeys(("in-a-thread", "on-the-loop", "in-a-child"), "Ada")


def test_the_secret_is_made_as_the_page_says(place: Place) -> None:
    [line] = [block.text for block in blocks(PAGE) if block.kind == "sh"]
    said = subprocess.run(
        ["bash", "-c", f"{line}\necho $PIPELINE_WEBHOOK_SECRETS"], capture_output=True, text=True, check=True
    )
    assert len(decode_secret(said.stdout.strip())) == 32
    assert shlex.split(line)[0] == "export" and webhook.name == "webhook"
