"""The pytest plugin: there for everybody, at no cost to those who do not use it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pika
import pytest
from pytest_rabbitmq.factories.executor import RabbitMqExecutor

from pipeline.testing import Run
from pipeline.testing.servers.node import Node
from pipeline.testing.servers.run import RealRun
from tests.place import ROOT
from tests.testing.planned import planned

HEAVY = ("dramatiq", "orjson", "pika", "psycopg", "pydantic", "pytest_rabbitmq", "sqlalchemy", "structlog")
LOADED = f"import pipeline.testing.plugin, sys; print(*[one for one in {HEAVY} if one in sys.modules])"


def test_a_run_without_its_fixtures_loads_nothing_of_the_engine() -> None:
    """Neither its packages nor pytest-rabbitmq."""
    said = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True, cwd=ROOT)
    assert said.stdout.split() == []


def test_pytest_finds_it_by_its_entry_point(pytestconfig: pytest.Config) -> None:
    """Nobody has to name it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"pipeline": "pipeline.testing.plugin"}
    plugin = pytestconfig.pluginmanager.get_plugin("pipeline")
    assert plugin is not None and plugin.__name__ == "pipeline.testing.plugin"


def test_the_run_is_in_memory_unless_servers_are_asked_for(pipeline_run: Run, pytestconfig: pytest.Config) -> None:
    """And has no database unless pipeline_tables makes one."""
    assert not pytestconfig.getoption("--pipeline-servers")
    assert pipeline_run.engine is None
    job = pipeline_run.submit(planned, {"plan": []})
    pipeline_run.drain()
    assert job.status == "succeeded"


def test_two_runs_of_one_session_share_servers_and_no_jobs(
    pipeline_servers: RealRun,
) -> None:
    """A database of the test's own; and a kill of the worker between two drains costs nothing."""
    assert not pipeline_servers.jobs()
    job = pipeline_servers.submit(planned, {"plan": ["snooze"]})
    pipeline_servers.drain()
    assert (job.status, job.wait_reason) == ("pending", "breaker")
    pipeline_servers.kill_worker()
    pipeline_servers.advance(minutes=11)
    pipeline_servers.drain()
    assert (job.status, job.crashes) == ("succeeded", 0)


def test_the_node_is_one_that_pytest_rabbitmq_can_use(rabbitmq_proc: Node) -> None:
    """What pipeline_rabbitmq_proc gives, of this repository's own servers."""
    assert isinstance(rabbitmq_proc, RabbitMqExecutor)
    parameters = rabbitmq_proc.parameters("pipeline")
    with pika.BlockingConnection(parameters) as connection:
        assert connection.is_open
