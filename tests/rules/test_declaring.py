"""Declaring a workflow: what is refused at once, what stays callable, and what a phase may return."""

from __future__ import annotations

import math
import subprocess
import sys
from threading import Thread
from uuid import uuid4

import pytest

from pipeline import BadInput, Job, Workflow
from pipeline.declare.job import encode


def new() -> Workflow:
    return Workflow(f"declared-{uuid4().hex[:12]}")


def test_a_decorated_function_stays_callable() -> None:
    """Its test needs neither broker nor database."""
    orders = new()

    @orders.phase
    def check_stock(job: Job) -> dict[str, int]:
        """Look at the shelf."""
        return {"left": job.body["wanted"] - 1}

    assert check_stock(Job({"wanted": 4})) == {"left": 3}
    assert (check_stock.__name__, check_stock.__doc__) == ("check_stock", "Look at the shelf.")
    assert check_stock.spec.queue == f"{orders.name}.check-stock"


def test_an_async_function_runs_on_the_event_loop() -> None:
    """Its kind is known at declaration; isolated, it runs in a child process like any other."""
    workflow = Workflow("kinds")

    @workflow.phase
    async def crawl(job: Job) -> None: ...

    @workflow.phase(isolated=True)
    async def render(job: Job) -> None: ...

    @workflow.phase
    def store(job: Job) -> None: ...

    assert [phase.spec.kind for phase in (crawl, render, store)] == ["async", "isolated", "thread"]


def test_a_return_that_cannot_travel_is_refused_at_declaration() -> None:
    """The annotation says so before the first job does."""

    def render(job: Job) -> Thread:
        return Thread()

    with pytest.raises(TypeError, match="values of Thread cannot travel as JSON: use a pydantic model, a dataclass"):
        new().phase(render)


def test_two_phases_of_one_name_are_refused() -> None:
    """They would share a queue."""
    twice = new()
    twice.phase("look")(lambda job: None)
    with pytest.raises(ValueError, match="already has a phase named 'look'"):
        twice.phase("look")(lambda job: None)


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": object()}, {"a": math.nan}, {"a": [{"b": -math.inf}]}])
def test_what_json_cannot_say_is_refused_and_not_changed(value: dict[str, object]) -> None:
    """NaN would come back as null, which is another number."""
    with pytest.raises(ValueError, match=r"not JSON serializable|NaN and Infinity are not valid JSON"):
        encode(value)


def test_null_is_fine() -> None:
    """Only what cannot be said is refused."""
    assert encode({"a": None, "b": [None, {"c": 1.5}]}) == b'{"a":null,"b":[null,{"c":1.5}]}'


def test_a_result_is_found_by_the_functions_own_name() -> None:
    """And by the phase's; another name says which there are."""
    job = Job(results={"check-stock": {"left": 3}})
    assert job.results["check_stock"] == job.results["check-stock"] == job.results.get("check_stock") == {"left": 3}
    assert job.results.get("nothing") is None
    with pytest.raises(KeyError, match="no earlier phase 'ship' has returned a result; there are: check-stock"):
        job.results["ship"]


GUEST = """
import dramatiq, socket, os
from dramatiq.brokers.stub import StubBroker
socket.socket.connect = None
os.environ.clear()
mine = StubBroker(); dramatiq.set_broker(mine); encoder = dramatiq.get_encoder()
from pipeline import Job, Workflow
orders = Workflow("orders")
@orders.phase
def check(job: Job) -> None: ...
@dramatiq.actor
def own(): ...
assert dramatiq.get_broker() is mine and dramatiq.get_encoder() is encoder and own.broker is mine
assert list(mine.actors) == ["own"], mine.actors
"""
HOST = """
import dramatiq
import pipeline.actors
@dramatiq.actor
def own(): ...
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ".", **environment},
    )


def test_declaring_touches_nothing_of_an_application_that_has_a_broker() -> None:
    """Neither its broker nor its encoder; nothing connects and no setting is read."""
    ran = run(GUEST)
    assert ran.returncode == 0, ran.stderr


def test_an_applications_actor_is_refused_on_the_pipelines_broker() -> None:
    """With what to do: its retries and delays are Dramatiq's, which this broker replaces."""
    ran = run(HOST, PIPELINE_WORKFLOWS="")
    assert ran.returncode != 0
    assert "actor own cannot run on the pipeline's broker: give it a broker of its own" in ran.stderr


def test_a_workflow_module_that_replaces_the_broker_is_refused(tmp_path: object) -> None:
    """Its phases would never be consumed, and nobody would notice."""
    code = "import sys, types, dramatiq\nfrom dramatiq.brokers.stub import StubBroker\n"
    code += "import importlib.abc, importlib.machinery\n"
    code += "module = types.ModuleType('shop'); exec('import dramatiq', module.__dict__)\n"
    code += "class Loader(importlib.abc.Loader):\n"
    code += "    def create_module(self, spec): return None\n"
    code += "    def exec_module(self, module): dramatiq.set_broker(StubBroker())\n"
    code += "class Finder(importlib.abc.MetaPathFinder):\n"
    code += "    def find_spec(self, name, path, target=None):\n"
    code += "        return importlib.machinery.ModuleSpec(name, Loader()) if name == 'shop' else None\n"
    code += "sys.meta_path.insert(0, Finder())\nimport pipeline.actors\n"
    ran = run(code, PIPELINE_WORKFLOWS="shop")
    assert ran.returncode != 0 and "has called dramatiq.set_broker(...)" in ran.stderr


def test_a_body_that_is_not_json_is_refused_with_its_place() -> None:
    """Nothing is stored: the database is not even asked."""
    from pipeline import submit_many

    with pytest.raises(BadInput, match=r"body 2 cannot be stored as JSON: NaN and Infinity are not valid JSON"):
        submit_many(None, "orders", [{"n": 1}, {"n": math.nan}])
