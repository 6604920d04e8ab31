"""docs/reference/python.md: every public name is on it, with an example that does what it says."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import structlog
from fastapi import APIRouter, Request
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.orm import Session

import pipeline
from docs.public_names import CHAPTERS, PRELUDE, docstring
from docs.signatures import members
from pipeline import engine
from pipeline.declare import extension, registry
from pipeline.store.register import register
from pipeline.testing import FakeServices, in_memory
from pipeline.webhooks.signature import decode_secret, sign
from tests.place import Place

NAMES = [(chapter.module, name) for chapter in CHAPTERS for name in chapter.names]
# Their examples need PostgreSQL; all others are run in memory.
ON_POSTGRES = frozenset(
    [
        "submit",
        "submit_many",
        "engine",
        "readable_errors",
        "set_rate_limit",
        "pause_rate_limit",
        "schedule",
        "unschedule",
        "pause_schedule",
        "resume_schedule",
        "run_schedule",
        "backfill",
        "schedules",
        "Schedule",
        "TransactionDispatcher",
        "transaction",
        "Phase",
    ]
)
WEBHOOK = "pipeline.webhooks.delivery"
SECRET = "whsec_" + "A" * 32
BODY = b'{"type": "orders.succeeded"}'


def examples(module: str, name: str) -> list[doctest.DocTest]:
    """Those of a name and of its methods, each with what all of them have before them."""
    thing = getattr(import_module(module), name)
    said = {name: docstring(module, name)}
    if inspect.isclass(thing):
        said |= {f"{name}.{member}": inspect.getdoc(function) or "" for member, function in members(thing)}
    parser = doctest.DocTestParser()
    return [parser.get_doctest(text, {}, where, None, 0) for where, text in said.items() if ">>>" in text]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What examples declare is known to them alone; so is the workflow of webhooks, which its import declares."""
    known = sys.modules.pop(WEBHOOK, None)
    monkeypatch.setattr(pipeline.webhooks, "delivery", None, raising=False)
    monkeypatch.setattr(extension, "_extensions", {})
    monkeypatch.setattr(registry, "_workflows", {})
    import_module(WEBHOOK)
    yield dict(registry.workflows())
    del sys.modules[WEBHOOK]
    if known is not None:
        sys.modules[WEBHOOK] = known


def namespace(module: str) -> dict[str, Any]:
    """A module of a user's, who has imported what the examples name."""
    made = sys.modules["examples"] = ModuleType("examples")
    for home in (pipeline, import_module(module)):
        made.__dict__.update({name: getattr(home, name) for name in home.__all__})
    request = SimpleNamespace(body=BODY, headers=sign([decode_secret(SECRET)], "msg-1", int(time.time()), BODY))
    made.__dict__.update(request=request, secret=SECRET, router=APIRouter(), Request=Request, BaseModel=BaseModel)
    made.__dict__.update(asyncio=asyncio, structlog=structlog, contextmanager=contextmanager, UUID=UUID)
    made.__dict__.update(Session=Session, FakeServices=FakeServices)
    return made.__dict__


def check(
    module: str, name: str, declared: dict[str, Any], begin: Callable[[], object] = lambda: None, **more: Any
) -> str:
    """Each example begins anew, with the workflows that all of them have. All that is wrong is told at once."""
    said: list[str] = []
    for example in examples(module, name):
        registry._workflows.clear()
        registry._workflows.update(declared)
        example.globs = {**namespace(module), **more}
        exec(compile(PRELUDE, "docs/public_names.py", "exec"), example.globs)
        begin()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(example, out=said.append)
    return "".join(said)


def test_every_public_name_is_on_the_page_with_an_example() -> None:
    for module in ("pipeline", "pipeline.testing", "pipeline.webhooks", "pipeline.api", "pipeline.cli"):
        written = {name for chapter in CHAPTERS if chapter.module == module for name in chapter.names}
        assert written == set(import_module(module).__all__)
    assert not [name for module, name in NAMES if ">>>" not in docstring(module, name)]


def test_every_example_that_needs_no_server_does_what_it_says(declared: dict[str, Any]) -> None:
    wrong = [check(module, name, declared) for module, name in NAMES if name == "in_memory"]
    for module, name in NAMES:
        if name not in ON_POSTGRES | {"in_memory"}:
            with in_memory() as run:
                wrong.append(check(module, name, declared, run=run))
    assert not any(wrong), "".join(wrong)


def test_every_example_that_needs_postgresql_does_what_it_says(declared: dict[str, Any], place: Place) -> None:
    """Jobs and schedules of one are gone before the next one looks."""

    def begin() -> None:
        with engine().begin() as connection:
            connection.execute(text("DELETE FROM pipeline.jobs"))
            connection.execute(text("DELETE FROM pipeline.schedules"))
            register(connection, registry.workflows().values(), 300.0)

    wrong = [check(module, name, declared, begin) for module, name in NAMES if name in ON_POSTGRES]
    assert not any(wrong), "".join(wrong)
