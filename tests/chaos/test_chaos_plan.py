"""The plan of script/chaos has every fault, and the means by which faults are made do what they say."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from chaos import faults
from chaos.disk import cannot_mount, filled, mount, unmount
from chaos.fault import CATALOGUE
from chaos.kept import kept
from chaos.observer import until
from chaos.stage import Stage
from tests.place import lives


def test_the_full_plan_has_every_fault_twice_and_twenty_pairs() -> None:
    """The same seed gives the same pairs; a fault with servers of its own has none."""
    plan = faults.full_plan(random.Random(5))
    alone = Counter(chosen[0].name for chosen in plan if len(chosen) == 1)
    pairs = [chosen for chosen in plan if len(chosen) == 2]
    assert alone == dict.fromkeys(CATALOGUE, 2) and len(pairs) == 20
    assert not [fault.name for pair in pairs for fault in pair if fault.elsewhere]
    assert plan == faults.full_plan(random.Random(5)) != faults.full_plan(random.Random(6))
    assert len(faults.quick_plan()) == 8


def test_the_catalogue_has_every_kind_of_fault() -> None:
    """What a process, a server, the network, a disk and a clock can do."""
    for word in ("worker SIGKILL", "worker SIGSTOP", "relay leader SIGKILL", "relay leader SIGSTOP", "scheduler SIGKILL",
                 "scheduler SIGSTOP", "API SIGKILL", "API SIGSTOP", "rolling deploy", "RabbitMQ SIGKILL", "memory alarm", "disk alarm",
                 "consumer_timeout of 60 s", "queue purge", "data wiped", "closed by an operator", "fast restart", "immediate restart",
                 "backends terminated", "all connections", "locked for a minute", "unreachable", "half-open", "one direction only",
                 "0.3 s away", "two schedulers", "two relays", "temp folder on a full disk", "cache folder on a full disk", "10 minutes off",
                 "cluster of three"):  # fmt: skip
        assert [name for name in CATALOGUE if word in name], word


def test_what_is_kept_running_comes_back_and_goes_in_the_end(tmp_path: Path) -> None:
    """A scheduler or an API under a fault: killed, frozen, and not left behind."""
    stage = cast(Stage, SimpleNamespace(environment=lambda: {}, folder=tmp_path))
    with kept(stage, "sleeper", ["-c", "import time; time.sleep(60)"]) as [sleeper]:
        before = sleeper.pid
        sleeper.kill()
        assert sleeper.pid != before
        with sleeper.frozen():
            until(lambda: _state(sleeper.pid) == "T", 5, "a frozen process")
        until(lambda: _state(sleeper.pid) != "T", 5, "a process that goes on")
        last = sleeper.pid
    assert not lives(before) and not lives(last)


@pytest.mark.skipif(cannot_mount() is not None, reason="mounting needs root")
def test_a_small_disk_can_be_filled_and_freed(tmp_path: Path) -> None:
    """Not a byte is free meanwhile."""
    if said := mount(tmp_path, "64k"):
        pytest.skip(said)
    try:
        with filled(tmp_path) as taken, pytest.raises(OSError, match="No space left"):
            assert taken > 0
            (tmp_path / "file").write_bytes(b"x" * 4096)
        (tmp_path / "file").write_bytes(b"x" * 4096)
    finally:
        unmount(tmp_path)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
