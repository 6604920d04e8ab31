"""Limits and breakers by name on real workers: kept by all of them, in every kind of phase, and through kills."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from pipeline import BadInput, submit, submit_many
from pipeline.declare import registry
from tests.place import Place

JOBS = 12
OPENED = "SELECT coalesce(max(times_opened), 0) FROM pipeline.breakers WHERE name = %s"
LEFT = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"
WELL = "SELECT count(*) FROM pipeline.jobs WHERE status = 'succeeded'"


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So that submits know them, and no other test does: their limits would be in everybody's database."""
    monkeypatch.setattr(registry, "_workflows", dict(registry.workflows()))
    importlib.import_module("tests.limit_workflows")
    yield
    del sys.modules["tests.limit_workflows"]


def outside(place: Place, state: str) -> None:
    place.record_path.with_name("outside").write_text(state)


def all_end_well(place: Place, jobs: int, seconds: float = 90) -> None:
    place.until(lambda: place.count(LEFT) == 0, seconds, "every job to end")
    assert place.count(WELL) == jobs


def test_a_limit_is_kept_in_later_phases_of_every_kind_by_two_processes(place: Place) -> None:
    """A thread, a coroutine and a child each need a permit; a Retry-After holds every job of the name; a name is made from
    the body, and one that the body does not fill is refused in Python and fails its job in SQL."""
    place.load("tests.limit_workflows")
    place.worker(processes=2)
    began = time.time()
    submit_many(None, "limited", [{}] * JOBS)
    place.until(lambda: place.count(LEFT) == 0, 90, "every job to end")
    assert place.count(WELL) == JOBS
    calls = sorted(float(line.split()[4]) for line in place.record_path.read_text().splitlines())
    assert len(calls) == 3 * JOBS
    # The bound of every number of calls from the beginning: twenty a second, and two more in the first moment.
    assert all(count - 2 <= 20 * (at - began) for count, at in enumerate(calls, 1))
    first = submit(None, "told", {"told": 3600})
    paused = "SELECT count(*) FROM pipeline.rate_limits WHERE name = 'flow-told' AND pause_reason = 'retry_after'"
    place.until(lambda: place.count(paused) == 1, 30, "the pause of the name")
    second = submit(None, "told", {})
    said = "SELECT waits_for FROM pipeline.job_status(ARRAY[%s::uuid])"
    place.until(lambda: place.row(said, second) == {"waits_for": "retry_after"}, 30, "the second to be held")
    assert place.job(second)["fence"] == 0 and place.job(first)["attempts"] == 0
    place.finished(submit(None, "shops", {"shop": "north"}))
    assert (
        place.count("SELECT count(*) FROM pipeline.rate_limits WHERE name = 'shop:north' AND template = 'shop:{shop}'")
        == 1
    )
    with pytest.raises(BadInput, match="does not fill the limit"):
        submit(None, "shops", {"customer": 7})
    row = place.row("SELECT pipeline.submit('shops', %s) AS id", Jsonb({"customer": 7}))
    assert row is not None
    job: UUID = row["id"]
    place.until(lambda: place.job(job)["status"] == "failed", 30, "the job to fail")
    assert "does not fill the limit 'shop:{shop}'" in place.job(job)["error_message"]


@pytest.mark.parametrize(("workflow", "name"), [("bazaar", "bazaar"), ("boxed", "cage"), ("inner", "inner")])
def test_a_breaker_holds_the_jobs_of_all_processes_and_costs_them_nothing(
    place: Place, workflow: str, name: str
) -> None:
    """Of a phase, of an isolated one, and of a block inside one. It opens after failures of both processes; a probe that
    fails opens it again; then one succeeds, and all jobs do, with no execution charged."""
    place.load("tests.limit_workflows")
    place.worker(processes=2, threads=2)
    outside(place, "away")
    submit_many(None, workflow, [{}] * JOBS)
    place.until(lambda: place.count(OPENED, name) >= 2, 60, "a probe that failed")
    charged = "SELECT count(*) FROM pipeline.jobs WHERE attempts > 0"
    place.until(lambda: place.count(charged) == 0, 60, "every execution to be given back")
    called = len(place.executions())
    print(f"\n{called} calls to what is away, {JOBS} jobs, {place.count(OPENED, name)} times opened")
    outside(place, "")
    all_end_well(place, JOBS)
    assert place.count(charged) == 0
    assert place.count("SELECT count(*) FROM pipeline.breakers WHERE open_until IS NULL AND name = %s", name) == 1


def test_a_probe_whose_worker_is_killed_gives_way(place: Place) -> None:
    """It does not stay half-open: the job that probed goes on elsewhere, or another one probes."""
    place.load("tests.limit_workflows")
    place.worker(threads=2)
    place.worker(threads=2)
    outside(place, "away")
    submit_many(None, "bazaar", [{}] * JOBS)
    place.until(lambda: place.count(OPENED, "bazaar") >= 1, 60, "it to open")
    outside(place, "hangs")
    probing = (
        "SELECT probe_by FROM pipeline.breakers b JOIN pipeline.jobs j ON j.id = b.probe_by AND j.status = 'running'"
    )
    place.until(lambda: place.row(probing) is not None, 60, "a probe")
    found = place.row(probing)
    assert found is not None
    outside(place, "")
    place.kill_holder(found["probe_by"])
    all_end_well(place, JOBS)
