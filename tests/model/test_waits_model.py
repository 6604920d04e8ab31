"""What wakes a job that waits for somebody, searched through: see docs/model.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.test_protocol_model import search

MODEL = Path(__file__).with_name("waits.pml")


def test_whoever_waits_is_woken_once(tmp_path: Path) -> None:
    """Whatever comes first: the event or the wait for it, the last child's end or the wait, the time, a lock, a kill."""
    proof = search(tmp_path, model=MODEL)
    assert not proof.found
    assert proof.complete
    assert proof.states > 1000
    assert not proof.never_taken


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        pytest.param("NO_LOOK", "state==4", id="an event before the wait is not looked for: lost"),
        pytest.param("LOOK_BEFORE_LOCK", "state==4", id="looked for before the row is held: lost"),
        pytest.param("SIGNAL_WITHOUT_LOCK", "state==4", id="a signal does not take the job's row: lost"),
        pytest.param(
            "NO_SECOND_LOOK", "woken[1]==1", id="a signal does not look whether the time is over: woken twice"
        ),
        pytest.param("CHILDREN_FIRST", "state==4", id="children exist before the job waits for them: lost"),
        pytest.param("NO_MAINTENANCE", "state==4", id="an end that finds the batch held is left there: lost"),
        pytest.param("ONLY_UNCOUNTED", "state==4", id="a parent that was held is not looked at again: lost"),
        pytest.param("NO_ANSWER_KEPT", "woken[0]==1", id="nobody notes that the parent was answered: woken twice"),
        pytest.param("NO_TIME", "state==4", id="nobody looks whether the time is over: lost"),
        pytest.param("STALE_TIME", "woken[1]==1", id="the gate does not look again whether the job waits: woken twice"),
        pytest.param("NO_WAIT_AGAIN", "woken[1]==1", id="a replay does not wait again: continues without an answer"),
    ],
)
def test_a_wake_up_without_its_rule_is_lost_or_comes_twice(tmp_path: Path, broken: str, said: str) -> None:
    """There is a run that shows it."""
    assert said in search(tmp_path, broken, model=MODEL).found
