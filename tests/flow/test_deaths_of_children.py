"""Rule 4: a child that dies or must end takes no other job with it, and the next one does not wait for its successor."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from pipeline.declare.errors import Crashed, Snooze
from pipeline.journey.checkpoint import Interrupted
from pipeline.worker.isolation import wire
from pipeline.worker.isolation.children import Child
from tests.processes import lives
from tests.warm import Warm, meanwhile, until


@pytest.mark.parametrize(
    ("phase", "body", "cause"),
    [
        ("act", {"do": "die", "signal": "SIGSEGV"}, "killed by SIGSEGV"),
        ("act", {"do": "die", "signal": "SIGKILL"}, "killed by SIGKILL, as the system does when memory runs out"),
        ("act", {"do": "exit"}, "exit code 3"),
        ("small", {"do": "take", "mb": 300}, "memory limit of 209715200 bytes"),
        ("brief", {"do": "hang"}, "time limit of 1 s"),
        ("brief", {"do": "die", "signal": "SIGSTOP"}, "time limit of 1 s"),
    ],
    ids=["SIGSEGV", "SIGKILL", "exit", "memory", "time", "never answers"],
)
def test_a_death_has_its_cause_and_costs_the_next_job_one_fork(
    warm: Warm, phase: str, body: dict[str, object], cause: str
) -> None:
    """In its first job and when it is warm; nobody else's child dies, and the next one needs no new interpreter."""
    bystander, server = warm.pid("other"), warm.server()
    for _ in range(2):
        with pytest.raises(Crashed, match=cause):
            warm.run(phase, **body)
        forks, died = warm.forks, monotonic()
        successor = warm.pid(phase)
        print(f"{cause}: the next job had its answer after {(monotonic() - died) * 1000:.0f} ms")
        assert warm.forks == forks + 1
        assert warm.pid(phase) == successor
    assert warm.pid("other") == bystander and warm.server() == server


def test_what_a_child_started_ends_with_it(warm: Warm, tmp_path: Path) -> None:
    """A program that it runs for its job, say."""
    with pytest.raises(Crashed):
        warm.run("brief", do="family", file=str(tmp_path / "pids"))
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    until(lambda: not any(map(lives, pids)), "both to end")


def test_a_job_that_crashed_before_gets_an_unused_child_that_nobody_uses_after_it(warm: Warm) -> None:
    """Whatever it does to it."""
    usual = warm.pid()
    suspect = warm.attempt()
    suspect.crashes = 1
    unused = warm.isolated(suspect)["pid"]
    assert unused != usual and warm.pid() == usual
    until(lambda: not lives(unused), "the child to go")


def test_a_child_that_died_while_it_was_idle_costs_nobody_anything(warm: Warm) -> None:
    """Its next job gets another one, also if it dies just when the job comes."""
    first = warm.pid()
    os.kill(first, signal.SIGKILL)
    second = warm.pid()
    assert second != first
    child = warm.children._idle[-1]
    os.kill(second, signal.SIGKILL)
    until(lambda: not child.waits(), "its death")
    child.waits = lambda: True  # type: ignore[method-assign]  # as seen a moment ago
    assert warm.pid() not in (first, second)


def test_a_fork_server_that_dies_is_replaced_and_its_jobs_are_not_charged(warm: Warm, tmp_path: Path) -> None:
    """All children die with it: the job had no part in that."""
    idle, server = warm.pid("other"), warm.server()
    attempt = warm.attempt(do="family", file=str(tmp_path / "pids"))

    def kill_it() -> None:
        until((tmp_path / "pids").exists, "the job to run")
        os.kill(server, signal.SIGKILL)

    with pytest.raises(Snooze), meanwhile(kill_it):
        warm.isolated(attempt)
    until(lambda: not lives(idle), "its idle child to go")
    assert warm.pid() and warm.server() != server


def test_an_interrupt_that_comes_before_the_child_is_assigned_is_obeyed(warm: Warm) -> None:
    """F15: before there is anything to stop, the attempt only has a reason. A new child, and a warm one."""
    for _ in range(2):
        attempt = warm.attempt(do="hang")
        attempt.interrupt("cancelled")
        with pytest.raises(Interrupted):
            warm.isolated(attempt)
        warm.pid()
    assert warm.children._idle[-1].jobs == 1


def test_an_interrupt_between_assigned_and_begun_is_obeyed(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    """F15: the child has its order, or not yet; nothing of the job counts."""
    order = Child.order

    def interrupted(child: Child, text: bytes) -> None:
        attempt.interrupt("shutdown")
        order(child, text)

    attempt = warm.attempt(do="hang")
    monkeypatch.setattr(Child, "order", interrupted)
    with pytest.raises(Interrupted):
        warm.isolated(attempt)


def test_an_interrupt_ends_a_running_child(warm: Warm, tmp_path: Path) -> None:
    """And the thread comes back when it is dead, not before: the folder is its own to remove."""
    attempt = warm.attempt(do="family", file=str(tmp_path / "pids"))

    def cancel() -> None:
        until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text(), "the job to run")
        attempt.interrupt("cancelled")

    with pytest.raises(Interrupted), meanwhile(cancel):
        warm.isolated(attempt)
    assert not lives(int((tmp_path / "pids").read_text().split()[0]))


def test_an_interrupt_that_comes_just_after_the_answer_hits_nobody(warm: Warm) -> None:
    """The attempt has no child any more."""
    attempt = warm.attempt()
    pid = warm.isolated(attempt)["pid"]
    attempt.interrupt("cancelled")
    assert warm.pid() == pid


def test_a_child_that_was_told_to_end_while_it_answered_is_not_used_again(
    warm: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next job would die with it."""
    messages = Child.messages

    def interrupted(child: Child) -> Iterator[tuple[str, Any]]:
        for kind, content in messages(child):
            if kind == wire.ANSWER:
                attempt.interrupt("cancelled")
            yield kind, content

    attempt = warm.attempt()
    with monkeypatch.context() as patched:
        patched.setattr(Child, "messages", interrupted)
        pid = warm.isolated(attempt)["pid"]
    assert warm.pid() != pid
