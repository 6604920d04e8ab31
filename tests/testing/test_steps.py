"""job.step under the kit: what is kept is not run again, in memory and on servers."""

from __future__ import annotations

from pathlib import Path

from pipeline.testing import Run, in_memory
from tests.testing.stepped import stepped


def dies_in_the_second_step(run: Run, calls: Path) -> tuple[object, ...]:
    """Killed when the function has returned and its result is not kept."""
    job = run.submit(stepped, {"calls": str(calls)})
    run.kill_at("kit-stepped.pay", step="capture it")
    run.kill_at("kit-stepped.book")
    run.drain()
    return job.status, job.outcomes, job.result, calls.read_text().split("\n")


EXPECTED = (
    "succeeded",
    [("pay", "crashed"), ("pay", "succeeded"), ("book", "crashed"), ("book", "succeeded")],
    ["captured reserve", "captured capture it", "captured settle"],
    ["reserve", "capture it", "capture it", "settle", ""],
)


def test_a_step_that_is_kept_is_not_run_again_in_memory(tmp_path: Path) -> None:
    """One that died before it was kept is."""
    with in_memory() as run:
        assert dies_in_the_second_step(run, tmp_path / "calls") == EXPECTED


def test_a_step_that_is_kept_is_not_run_again_on_servers(pipeline_servers: Run, tmp_path: Path) -> None:
    """The same, with a worker that is killed."""
    assert dies_in_the_second_step(pipeline_servers, tmp_path / "calls") == EXPECTED
