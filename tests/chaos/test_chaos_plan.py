"""The plan of script/chaos has every fault, and the means by which faults are made do what they say."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from chaos import faults, subject, times, workflow
from chaos.disk import cannot_mount, filled, mount, unmount
from chaos.fault import CATALOGUE
from chaos.kept import kept
from chaos.namespace import Namespace, cannot_make
from chaos.observer import until
from chaos.routes import MANAGEMENT
from chaos.stage import Stage
from chaos.work import PHASES
from pipeline.declare.phase import PhaseSpec
from pipeline.dev.services import Servers
from pipeline.settings import Settings
from tests.place import lives


def test_the_full_plan_has_every_fault_and_twenty_pairs() -> None:
    """The same seed gives the same pairs; a fault with servers of its own has none."""
    plan = faults.full_plan(random.Random(5))
    alone = Counter(chosen[0].name for chosen in plan if len(chosen) == 1)
    pairs = [chosen for chosen in plan if len(chosen) == 2]
    twice = dict.fromkeys(faults.BOTH_WAYS, 2)
    assert alone == {**dict.fromkeys(CATALOGUE, 1), **twice} and len(pairs) == len(set(pairs)) == 20
    assert not [fault.name for pair in pairs for fault in pair if fault.elsewhere]
    assert plan == faults.full_plan(random.Random(5)) != faults.full_plan(random.Random(6))


def test_what_loses_messages_is_done_with_and_without_the_management_address() -> None:
    """Every second wave is without; these are in one of each, whatever the pairs are."""
    for seed in range(20):
        plan = faults.full_plan(random.Random(seed))
        for name in faults.BOTH_WAYS:
            numbers = [n for n, chosen in enumerate(plan, 1) if chosen == (CATALOGUE[name],)]
            assert {faults.with_management(n) for n in numbers} == {True, False}, name
    assert abs(sum(faults.with_management(n) for n in range(1, len(plan) + 1)) - len(plan) / 2) < 1


def test_the_quick_plan_has_nine_of_the_worst() -> None:
    """Old ones and new ones."""
    names = [chosen[0].name for chosen in faults.quick_plan()]
    assert len(names) == 9 and {"worker SIGKILL", "one PostgreSQL connection of each kind lost alone"} < set(names)


def test_the_catalogue_has_every_kind_of_fault() -> None:
    """What a process, a server, the network, a disk, a clock, an application and a neighbour can do."""
    for word in (
        "worker SIGKILL",
        "worker SIGSTOP",
        "relay leader SIGKILL",
        "relay leader SIGSTOP",
        "scheduler SIGKILL",
        "scheduler SIGSTOP",
        "API SIGKILL",
        "API SIGSTOP",
        "rolling deploy",
        "RabbitMQ SIGKILL",
        "memory alarm",
        "disk alarm",
        "consumer_timeout of 60 s",
        "queue purge",
        "data wiped",
        "closed by an operator",
        "fast restart",
        "immediate restart",
        "backends terminated",
        "all connections",
        "locked for longer than a lease",
        "unreachable",
        "half-open",
        "one direction only",
        "0.3 s away",
        "two schedulers",
        "two relays",
        "temp folder on a full disk",
        "cache folder on a full disk",
        "10 minutes off",
        "cluster of three",
        "connection of each kind lost alone",
        "leader cut off from RabbitMQ alone",
        "leader's RabbitMQ silent",
        "holds a cancel, a batch and rows",
        "packets to PostgreSQL dropped",
        "read-only",
        "out of disk space",
        "file descriptors",
        "out of threads",
        "management API hangs",
        "stuck past their time limit",
        "stuck at a cancel",
        "stuck at a deploy",
        "old and new code",
        "two pipelines",
        "SIGHUP",
        "snapshot held",
        "restarted together",
        "away for longer than a lease",
        "failover to a synchronous standby",
    ):
        assert [name for name in CATALOGUE if word in name], word


def test_the_times_of_a_run_have_the_proportions_of_the_defaults() -> None:
    """A heartbeat longer than the patience, fifteen heartbeats a lease, and no setting left out."""
    found = times.environment()
    scaled = Settings(DATABASE_URL="postgresql://x", RABBITMQ_URL="amqp://x", **_by_alias(found))  # type: ignore[arg-type]
    for name, field in Settings.model_fields.items():
        if name.endswith("_seconds") and name not in times.UNSCALED:
            assert getattr(scaled, name) == pytest.approx(field.default / times.FASTER), name
    assert scaled.heartbeat_seconds > scaled.patience_seconds
    assert scaled.stale_seconds == pytest.approx(15 * scaled.heartbeat_seconds)


def test_the_phases_have_the_options_that_users_get() -> None:
    """Only a fault that is about a time limit has one of its own."""
    assert [actor.spec for actor in workflow.chaos.phases] == [PhaseSpec("chaos", name) for name in PHASES]
    assert workflow.endless.spec == PhaseSpec("chaos-endless", "stuck")
    assert workflow.limited.spec == PhaseSpec("chaos-limited", "stuck", time_limit=workflow.STUCK_LIMIT)


def test_workers_without_the_management_address_do_not_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in what they are given nor in what they inherit; through proxies each has servers of its own."""
    monkeypatch.delenv(MANAGEMENT, raising=False)
    stage = Stage(_addresses(), subject.find(None), tmp_path, seed=1, workers=2)
    try:
        assert all(MANAGEMENT in one for one in stage.environments(2))
        stage.management = False
        assert not any(MANAGEMENT in {**os.environ, **one} for one in stage.environments(2))
        stage.proxied = True
        for name in ("DATABASE_URL", "RABBITMQ_URL"):
            assert len({one[name] for one in [stage.environment(), *stage.environments(2)]}) == 3
    finally:
        stage.close()


@pytest.mark.skipif(cannot_make() is not None, reason="network namespaces cannot be made here")
def test_packets_of_one_server_are_lost_without_a_word() -> None:
    """What was sent meanwhile arrives afterwards, on the same connection; the other server's goes on."""
    namespace = Namespace()
    with (
        namespace.made(),
        socket.create_server((namespace.postgres, 0)) as one,
        socket.create_server((namespace.rabbitmq, 0)) as two,
        _peer(namespace, one, two) as peer,
        one.accept()[0] as lost,
        two.accept()[0] as well,
    ):
        lost.settimeout(0.5)
        with namespace.postgres_silent():
            lost.sendall(b"x")
            well.sendall(b"x")
            well.settimeout(10)
            assert well.recv(1) == b"x"
            with pytest.raises(TimeoutError):
                lost.recv(1)
        lost.settimeout(20)
        assert lost.recv(1) == b"x"
        assert peer.poll() is None


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


def _addresses() -> Servers:
    """Servers that nobody started: their addresses are all that is asked for."""
    postgres = SimpleNamespace(url=lambda name: f"postgresql://x:y@127.0.0.1:1/{name}")
    rabbitmq = SimpleNamespace(url=lambda name: f"amqp://x:y@127.0.0.1:2/{name}")
    more = {
        "database_url": "",
        "rabbitmq_url": "",
        "management_url": "http://127.0.0.1:3",
        "management_user": ("x", "y"),
    }
    return cast(Servers, SimpleNamespace(postgres=postgres, rabbitmq=rabbitmq, **more))


def _by_alias(variables: dict[str, str]) -> dict[str, float]:
    """As fields are given to the constructor: by their names, or by the variable that names them."""
    return {
        name.removeprefix("PIPELINE_").lower() if name.startswith("PIPELINE_") else name: float(value)
        for name, value in variables.items()
    }


@contextmanager
def _peer(namespace: Namespace, *servers: socket.socket) -> Iterator[subprocess.Popen[bytes]]:
    """A program on the other end of the cable that sends back what it gets."""
    ends = [server.getsockname() for server in servers]
    code = (
        "import socket, sys, threading, json\n"
        "def echo(end):\n"
        "    connection = socket.create_connection(tuple(end))\n"
        "    while piece := connection.recv(9): connection.sendall(piece)\n"
        "for end in json.loads(sys.argv[1]): threading.Thread(target=echo, args=(end,)).start()\n"
    )
    peer = subprocess.Popen([*namespace.command, sys.executable, "-c", code, json.dumps(ends)])
    try:
        yield peer
    finally:
        peer.kill()
        peer.wait()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
