"""Rule 4: children are kept warm with what their phase has loaded, and a job in one is as it would be in a thread."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from pipeline.declare.errors import Crashed, Transient
from pipeline.declare.job import Job
from pipeline.journey.settle import describe
from pipeline.worker.isolation import wire
from pipeline.worker.isolation.declarations import declarations
from tests import warm_workflow
from tests.processes import lives
from tests.warm import Warm, until


def test_what_a_phase_has_loaded_stays_loaded(warm: Warm, tmp_path: Path) -> None:
    """Many jobs, one child, one load of the model."""
    loads = tmp_path / "loads"
    pids = {warm.run(do="load", file=str(loads))["pid"] for _ in range(20)}
    assert loads.read_text().split() == [str(pid) for pid in pids] and warm.forks == 1


def test_large_bodies_and_results_pass(warm: Warm) -> None:
    """As large as a job may have them, to a new child and to a warm one."""
    text = "é" * 32_000
    answers = [warm.run(do="echo", text=text) for _ in range(5)]
    assert {answer["text"] for answer in answers} == {text} and len({answer["pid"] for answer in answers}) == 1


def test_each_phase_has_children_of_its_own(warm: Warm) -> None:
    """What one phase has loaded is not another's."""
    first, other = warm.pid("act"), warm.pid("other")
    assert first != other
    assert (warm.pid("act"), warm.pid("other")) == (first, other)


def test_a_child_is_replaced_after_max_jobs(warm: Warm) -> None:
    """Two jobs each, in this phase."""
    a, b, c, d, e = (warm.pid("twice") for _ in range(5))
    assert a == b and c == d and len({a, c, e}) == 3
    until(lambda: not lives(a) and not lives(c), "both to go")


def test_a_child_that_has_grown_is_replaced(warm: Warm) -> None:
    """The first 300 MB may be a model, in whichever job it is loaded; the next 300 MB are a leak."""
    first = warm.pid()
    assert warm.run(do="take", mb=300, keep=True)["pid"] == first
    assert warm.pid() == first
    assert warm.run(do="take", mb=300, keep=True)["pid"] == first
    assert warm.pid() != first


def test_idle_children_go_and_the_longest_idle_make_way(only_warm: None, tmp_path: Path) -> None:
    """After a while, and as soon as there are too many of them."""
    warm = Warm(tmp_path, threads=1, idle_seconds=3600, look=0.05)
    try:
        pids = [warm.pid(phase) for phase in ("act", "other", "twice")]
        until(lambda: not lives(pids[0]), "the longest idle to make way")
        assert lives(pids[1]) and lives(pids[2])
        warm.children._idle_seconds = 0.1
        until(lambda: not lives(pids[1]) and not lives(pids[2]), "the others to go")
        assert warm.pid() not in pids
    finally:
        warm.close()


def test_a_coroutine_runs_on_the_childs_own_loop(warm: Warm) -> None:
    """One loop for all its jobs: what a phase keeps may be bound to it."""
    assert len({warm.run(do="loop")["loop"] for _ in range(3)}) == 1


def test_memory_counts_from_the_jobs_start(only_warm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 MB are there before the first one begins, and what earlier jobs kept is not this one's."""
    monkeypatch.setenv("WARM_BALLAST_MB", "500")
    warm = Warm(tmp_path)
    try:
        pids = {warm.run("small", do="take", mb=120, keep=True)["pid"] for _ in range(3)}
        assert len(pids) == 1
        with pytest.raises(Crashed, match="memory limit"):
            warm.run("small", do="take", mb=220)
    finally:
        warm.close()


def test_the_start_is_not_the_phases_time(only_warm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports take twice as long as the limit, for which the phase is then stopped."""
    monkeypatch.setenv("WARM_SLOW", "2")
    warm = Warm(tmp_path)
    try:
        assert warm.pid("brief")
        with pytest.raises(Crashed, match="time limit of 1 s"):
            warm.run("brief", do="hang")
    finally:
        warm.close()


def test_an_error_is_the_same_as_in_a_thread_and_brings_its_traceback(warm: Warm) -> None:
    """The row's message is what ``describe`` makes of the original; the log has the rest."""
    with pytest.raises(ValueError, match="out of paper") as in_a_thread:
        warm_workflow.act(Job({"do": "raise", "error": "unexpected"}))
    with pytest.raises(Transient) as isolated:
        warm.run(do="raise", error="unexpected")
    assert describe(isolated.value) == describe(in_a_thread.value)
    told = str(isolated.value.__cause__)
    assert "ValueError: out of paper" in told and "warm_workflow.py" in told and "in _raise" in told
    with pytest.raises(Transient, match="out of paper") as planned:
        warm.run(do="raise", error="planned")
    assert planned.value.__cause__ is None


def test_modules_that_start_threads_are_imported_in_the_children(
    only_warm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with threads must not be forked. The children import by themselves, and stay warm all the same."""
    monkeypatch.setenv("WARM_THREAD", "yes")
    warm = Warm(tmp_path)
    try:
        assert len({warm.pid() for _ in range(3)}) == 1
        assert warm.children._forking._bare
        assert psutil.Process(warm.server()).num_threads() == 1
    finally:
        warm.close()


def test_a_module_that_cannot_be_imported_is_the_jobs_error(
    only_warm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words, and no crash."""
    monkeypatch.setenv("WARM_BROKEN", "yes")
    warm = Warm(tmp_path)
    try:
        with pytest.raises(Transient, match="this module is broken"):
            warm.pid()
    finally:
        warm.close()


def test_began_is_the_shortest_line() -> None:
    """A thread sleeps until there is more to hear than that."""
    others = (wire.line(wire.WAITING), wire.line(wire.ANSWER, {}), b"\n" + wire.line(wire.DIED, 0))
    assert all(len(one) > len(wire.BEGAN_LINE) for one in others)


def test_declarations_are_json(only_warm: None) -> None:
    assert json.loads(json.dumps(declarations()))["modules"] == {"warm": ["tests.warm_workflow"]}
