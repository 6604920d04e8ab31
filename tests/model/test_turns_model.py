"""The turns of a key, searched through: see docs/model.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.test_protocol_model import search

MODEL = Path(__file__).with_name("turns.pml")


@pytest.mark.parametrize(
    "switches", [(), ("PER_KEY=2",), ("RELAYS=2", "KILLS=1")], ids=["one", "two of a key", "two relays"]
)
def test_no_turn_is_lost_and_none_is_given_twice(switches: tuple[str, ...], tmp_path: Path) -> None:
    """Whoever is killed, retried or late."""
    proof = search(tmp_path, *switches, model=MODEL)
    assert not proof.found
    assert proof.complete
    assert proof.states > 1000


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        pytest.param(
            ("RELAYS=2", "KILLS=0", "NO_LOCK"), "<=1", id="two relays count without the lock: a turn too many"
        ),
        pytest.param(
            ("RELAYS=2", "KILLS=0", "COUNT_BEFORE_LOCK"), "<=1", id="it counts before it has the lock: a turn too many"
        ),
        pytest.param(("NO_WAKE",), "state[0]==4", id="an end wakes nobody: lost"),
        pytest.param(("LOOK_BEFORE_SLEEP",), "state[0]==4", id="it says that it sleeps after its last look: lost"),
        pytest.param(("NO_SECOND_LOOK",), "state[0]==4", id="who took it for awake commits later: lost"),
        pytest.param(("UNTOLD_TIME",), "state[0]==4", id="nobody tells when a wait is over: lost"),
    ],
)
def test_a_turn_is_lost_or_given_twice_without_its_rule(broken: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """There is a run that shows it."""
    assert said in search(tmp_path, *broken, model=MODEL).found
