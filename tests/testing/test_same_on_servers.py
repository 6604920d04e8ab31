"""The run in memory is a model of the engine: the same scenarios end the same on PostgreSQL, RabbitMQ and a worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dev.services import Servers
from pipeline.store.testing.databases import Databases
from pipeline.testing import JobRecord, Run, in_memory
from pipeline.testing.servers.private import on_servers
from tests.testing.planned import ACTIONS, planned

# Between two rounds time moves to the next moment at which something is due.
ROUNDS = 12


@dataclass(frozen=True)
class Scenario:
    """Plans of jobs, and what happens to them between rounds."""

    plans: list[list[str]]
    kills: list[str] = field(default_factory=list)
    cancels: set[int] = field(default_factory=set)
    replays: set[int] = field(default_factory=set)


def play(run: Run, scenario: Scenario) -> list[dict[str, Any]]:
    """What there is to be seen of each job in the end."""
    jobs = [run.submit(planned, {"plan": plan}) for plan in scenario.plans]
    for phase in scenario.kills:
        run.kill_at(phase)
    run.drain()
    for number in scenario.cancels:
        jobs[number % len(jobs)].cancel()
    for number in scenario.replays:
        jobs[number % len(jobs)].replay()
    for _ in range(ROUNDS):
        run.drain()
        run.advance()
    return [seen(job) for job in jobs]


def seen(job: JobRecord) -> dict[str, Any]:
    found = job.seen
    return {
        "status": found.status,
        "phase": found.phase,
        "results": found.results,
        "result": job.result,
        "crashes": found.crashes,
        "history": [(one.phase, one.outcome, one.number, one.fence) for one in found.attempts],
        "errors": [one.error for one in found.attempts if one.outcome not in ("crashed", "poisoned")],
        "waits": found.wait_reason,
    }


plans = st.lists(st.sampled_from(sorted(ACTIONS)), max_size=5)
# Of several jobs that run at once, who dies with a worker is chance.
scenarios = st.builds(
    Scenario,
    plans=st.lists(plans, min_size=4, max_size=8),
    cancels=st.sets(st.integers(0, 7), max_size=1),
    replays=st.sets(st.integers(0, 7), max_size=3),
) | st.builds(
    Scenario,
    plans=st.lists(plans, min_size=1, max_size=1),
    kills=st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=1),
    replays=st.sets(st.just(0)),
)

TABLE = {
    "nobody dies": Scenario(
        [
            [],
            ["nothing"],
            ["retry", "snooze", "asked", "ok", "unknown"],
            ["asked", "asked"],
            ["retry", "retry", "retry"],
            ["ok", "retry", "unknown"],
            ["fail"],
            ["not_json"],
            ["ok", "too_big"],
            ["retry"],
            ["ok", "cancel"],
            ["cancel"],
        ],
        cancels={9},
        replays={4, 5, 6},
    ),
    "killed in a thread": Scenario([[]], kills=["one"]),
    "killed on the event loop": Scenario([[]], kills=["two"]),
    "a poison pill": Scenario([[]], kills=["two", "two"], replays={0}),
}


def keyed(run: Run) -> list[dict[str, Any]]:
    """Keys, replacing, debouncing, tags and expiry."""
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    jobs = [
        run.submit(planned, {"plan": []}, unique="open", tags=["a", "b"]),
        run.submit(planned, {"plan": []}, unique="open"),
        run.submit(planned, {"plan": ["fail"]}, key="k", unique="open"),
        run.submit(planned, {"plan": ["fail"]}, key="h", unique=hour),
        run.submit(planned, {"plan": ["nothing"]}, key="d", debounce=hour, tags=["old"]),
        run.submit(planned, {"plan": ["snooze"]}, key="d", debounce=minute, tags=["new"]),
        run.submit(planned, {"plan": []}, due=datetime.now(UTC) + hour, expires=minute),
        run.submit(planned, {"plan": []}, expires=minute),
        run.submit(planned, {"plan": []}, delay=minute),
    ]
    run.drain()
    # The first has not ended when the other one is to be replayed: it is not due.
    soon = datetime.now(UTC) + minute
    jobs += [run.submit(planned, {"plan": []}, key="k", unique="open", due=soon), run.submit(planned, {}, key="h")]
    refused = jobs[2].replay()
    run.advance(minutes=2)
    run.drain()
    jobs += [run.submit(planned, {"plan": []}, key="h", unique=hour)]
    run.advance(hours=2)
    jobs += [run.submit(planned, {"plan": []}, key="h", unique=hour)]
    run.drain()
    which = [[one.id for one in jobs].index(job.id) for job in jobs]
    return [{"which": which, "refused": refused}, *({**without_error(job), "tags": job.tags} for job in jobs)]


def without_error(job: JobRecord) -> dict[str, Any]:
    """It names the moment of an expiry."""
    return {**seen(job), "errors": [str(error)[:20] for error in seen(job)["errors"]]}


def test_keys_tags_and_expiry_are_the_same(pipeline_servers: Run) -> None:
    """Who is answered with which job, and what becomes of it."""
    real = keyed(pipeline_servers)
    with in_memory() as run:
        assert keyed(run) == real
    assert real[0]["which"][:6] == [0, 0, 2, 3, 4, 4] and not real[0]["refused"]


@pytest.mark.parametrize("scenario", TABLE.values(), ids=TABLE)
def test_memory_and_servers_tell_the_same_history(scenario: Scenario, pipeline_servers: Run) -> None:
    """Statuses, attempts, fences, results, errors and reasons to wait."""
    real = play(pipeline_servers, scenario)
    with in_memory() as run:
        assert play(run, scenario) == real


def test_any_scenario_ends_the_same(
    pipeline_private_servers: Servers, pipeline_databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Found by Hypothesis; each on a database and with a worker of its own."""

    @settings(max_examples=5)
    @given(scenarios)
    def ends_the_same(scenario: Scenario) -> None:
        with in_memory() as run:
            expected = play(run, scenario)
        with on_servers(pipeline_private_servers, pipeline_databases, tmp_path_factory.mktemp("any")) as run_on_servers:
            assert play(run_on_servers, scenario) == expected

    ends_the_same()
