"""The protocol, searched through: every order of steps and faults within the bounds of docs/model.md, not a sample.

Spin turns the model into a C program; the program visits every state that the model can reach. What holds is proven
for these bounds; a rule taken away on purpose must be missed, or the model would prove nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("protocol.pml")
# A search takes seconds and 200 MB; the limits are for a machine that does other things. One that is cut off fails.
SECONDS, MEGABYTES = 180, 2000


@dataclass(frozen=True)
class Search:
    """What the checker printed."""

    text: str

    @property
    def states(self) -> int:
        return int(re.findall(r"^ *(\d+) states, stored", self.text, re.MULTILINE)[0])

    @property
    def found(self) -> str:
        """The first violation, or nothing."""
        return "".join(re.findall(r"^pan:1: (.*) \(at depth", self.text, re.MULTILINE))

    @property
    def complete(self) -> bool:
        """Every state was visited: neither time, depth nor memory cut the search short."""
        return "Search not completed" not in self.text and "max search depth too small" not in self.text

    @property
    def never_taken(self) -> list[str]:
        """Steps of the model's processes that no run took."""
        return [line for line in re.findall(r"^\t(\w+\.pml:.*)$", self.text, re.MULTILINE) if '"-end-"' not in line]


def search(folder: Path, *switches: str, ltl: str | None = None, model: Path = MODEL) -> Search:
    """Compile a model with these switches in ``folder`` and visit its states; with ``ltl``, check that formula."""
    for tool in ("spin", "gcc"):
        assert shutil.which(tool), f"{tool} is not installed: run script/setup, which installs what the tests need"
    shutil.copy(model, folder)
    build = ["-O1", "-DNOREDUCE", f"-DMEMLIM={MEGABYTES}", *(["-DNOFAIR"] if ltl else ["-DSAFETY", "-DNOCLAIM"])]
    _run(folder, "spin", *(f"-D{switch}" for switch in switches), "-a", model.name)
    _run(folder, "gcc", *build, "-o", "pan", "pan.c")
    result = Search(_run(folder, "./pan", "-m10000", "-w22", *(["-a", "-N", ltl] if ltl else [])))
    print(f"{' '.join(switches) or 'the protocol'}: {result.states} states; {result.found or 'no violation'}")
    return result


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def test_one_holder_effects_once_and_cancel_means_cancel(tmp_path: Path) -> None:
    """G2, G3, G5 and one token, with two crashes and one other fault at any step; nothing is left where a run ends."""
    proof = search(tmp_path)
    assert not proof.found
    assert proof.complete
    assert proof.states > 1_000_000
    assert not proof.never_taken


def test_every_job_reaches_a_final_state(tmp_path: Path) -> None:
    """G1, with the same faults. No fairness is assumed: whatever moves first, the job ends."""
    proof = search(tmp_path, "G1", ltl="g1")
    assert not proof.found
    assert proof.complete
    assert proof.states > 100_000


def test_redelivery_alone_saves_the_jobs_of_dead_workers(tmp_path: Path) -> None:
    """No sweep is needed after a crash between delivery and commit: this is what makes recovery instant (G7)."""
    proof = search(tmp_path, "G1", "REDELIVERY_ONLY", "OTHERS=0", ltl="g1")
    assert not proof.found
    assert proof.complete


def test_a_failover_that_loses_a_claim_leaves_one_holder(tmp_path: Path) -> None:
    """G2, G3: the attempt that PostgreSQL forgot works on under a fence that nobody is given again."""
    proof = search(tmp_path, "LOSSY", "G2", "G3")
    assert not proof.found
    assert proof.complete
    assert "my_fence" in search(tmp_path, "LOSSY", "NO_EPOCH", "G2").found, "without an epoch it is given again"


@pytest.mark.parametrize(
    ("broken", "claim", "said"),
    [
        pytest.param("NO_FENCE", "G2", "rightful==w", id="completion without the fence: a stranger writes"),
        pytest.param("NO_FENCE", "G3", "kept", id="completion without the fence: an effect is kept twice"),
        pytest.param("SAME_FENCE", "G2", "my_fence", id="takeover under the same fence: two holders"),
        pytest.param("NO_STATUS", "G5", "cancel_committed", id="completion by fence alone: kept after a cancel"),
        pytest.param(
            "NO_SEND_NUMBER", "TOKEN", "sent", id="claim and takeover without the send number: a second token"
        ),
    ],
)
def test_a_broken_rule_is_found_out(tmp_path: Path, broken: str, claim: str, said: str) -> None:
    """The claim that the rule protects fails, with a run that shows how."""
    assert said in search(tmp_path, broken, claim).found


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(("NO_RECLAIM",), id="no reclaim of what dead workers held"),
        pytest.param(("NO_RECONCILIATION",), id="no ledger of sent rows against messages"),
        pytest.param(("REDELIVERY_ONLY", "OTHERS=0", "ACK_FIRST"), id="acknowledged before the commit, and no sweeps"),
        pytest.param(("REDELIVERY_ONLY", "OTHERS=0", "NO_MESSAGE_PHASE"), id="a continued job disowns its message"),
    ],
)
def test_without_it_a_job_is_stuck_for_ever(tmp_path: Path, broken: tuple[str, ...]) -> None:
    """There is a run in which the job never becomes final."""
    assert "acceptance cycle" in search(tmp_path, "G1", *broken, ltl="g1").found


def test_the_model_has_runs_in_which_two_workers_do_the_same_job_at_once(tmp_path: Path) -> None:
    """Otherwise the fence would have nothing to guard, and its proof would be empty."""
    assert search(tmp_path, "G1", ltl="never_two_attempts_at_once").found
