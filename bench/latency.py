"""Latency: from submit to the third phase's end, alone and at half load; and what workers cost when nothing happens.

It begins when the caller calls, by the caller's clock, which is also the server's: they share a machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from time import monotonic, sleep, time
from typing import Protocol
from uuid import UUID

import psutil
from sqlalchemy import Connection

from bench import lab
from bench.paired import Figures, Measured, Plan, Rounds, merge, real
from bench.systems import NOW, Peer, Pipeline, dramatiq, pipeline
from pipeline import submit, submit_many

SINGLES, WARM_UP = 40, 5
# After a thaw: timers that fell due in the meantime have fired by then, and this is the idle state itself.
SETTLED = 1.0
ENDED = """SELECT extract(epoch FROM completed_at) FROM pipeline.jobs
    WHERE id = %s AND completed_at IS NOT NULL /* bench */"""
ENDS = """SELECT id, extract(epoch FROM completed_at) FROM pipeline.jobs
    WHERE created_at >= %s AND completed_at IS NOT NULL /* bench */"""


def latency(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Idle latency, and p99 at half of each one's own pace, against bare Dramatiq's chain."""
    with (
        pipeline(laboratory, "defaults", "chain", seconds=plan.seconds) as ours,
        dramatiq(laboratory, "dramatiq", seconds=plan.seconds) as bare,
    ):
        halves = {"pipeline": _half(ours), "dramatiq": _half(bare)}
        print("  half load: " + ", ".join(f"{name} {rate:.0f} jobs/s" for name, rate in halves.items()))
        sides = {
            "pipeline": partial(_turn, Ours(ours), halves["pipeline"], 2 * plan.seconds),
            "dramatiq": partial(_turn, Bare(bare), halves["dramatiq"], 2 * plan.seconds),
        }
        rounds = Rounds(sides, plan.rounds, "idle_p50", "half_load_p99")
    return merge(
        {
            "idle_latency_ms": _percentiles(rounds, "pipeline", "idle"),
            "idle_latency_dramatiq_ms": _percentiles(rounds, "dramatiq", "idle"),
            "half_load_latency_ms": _percentiles(rounds, "pipeline", "half_load"),
            "half_load_latency_dramatiq_ms": _percentiles(rounds, "dramatiq", "half_load"),
        },
        real(
            idle_latency_ratio=rounds.ratio("pipeline", "dramatiq", "idle_p50"),
            half_load_p99_vs_bare=rounds.ratio("pipeline", "dramatiq", "half_load_p99"),
        ),
    )


def idle(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Queries and processor time of workers that have had nothing to do for a while, over a minute."""
    with pipeline(laboratory, "defaults", "chain", name="idle", seconds=plan.seconds) as system:
        system.crew.thaw()
        sleep(25)  # the relay looks ever less often after the last job: this is the steady state
        before, cpu, started = lab.statements(system.db), _cpu(system), monotonic()
        sleep(60)
        took = (monotonic() - started) * lab.PROCESSES
        found = {
            "idle_queries_per_s_per_process": round((lab.statements(system.db) - before) / took, 3),
            "idle_cpu_percent_per_process": round(100 * (_cpu(system) - cpu) / took, 2),
        }
    print(f"  {found}")
    return found


class Chain(Protocol):
    """A system whose jobs' ages can be told, in seconds."""

    @property
    def crew(self) -> lab.Crew: ...

    def singles(self, jobs: int) -> list[float]:
        """One after the other, with nothing else to do."""

    def stream(self, rate: float, seconds: float) -> list[float]:
        """A steady stream, twenty groups a second."""


class Ours:
    def __init__(self, system: Pipeline) -> None:
        self.system, self.crew = system, system.crew

    def singles(self, jobs: int) -> list[float]:
        with self._connection() as connection:
            return [self._single(connection) for _ in range(jobs)]

    def stream(self, rate: float, seconds: float) -> list[float]:
        since, started = lab.one(self.system.db, NOW), monotonic()
        begun: dict[UUID, float] = {}
        with self._connection() as connection:
            while (age := monotonic() - started) < seconds:
                due, now = int(age * rate) - len(begun), time()
                if due > 0:
                    begun |= dict.fromkeys(submit_many(connection, "chain", [lab.BODY] * due), now)
                sleep(0.05)
        self.system.wait_for(len(begun), since)
        return [float(ended) - begun[job] for job, ended in self.system.db.execute(ENDS, (since,)).fetchall()]

    def _single(self, connection: Connection) -> float:
        begun = time()
        job = submit(connection, "chain", lab.BODY)
        lab.until(lambda: lab.one(self.system.db, ENDED, job) is not None, timeout=30, pause=0.003)
        return float(lab.one(self.system.db, ENDED, job)) - begun

    def _connection(self) -> Connection:
        """As ``submit(None, …)`` has it: a statement is a transaction."""
        return self.system.engine.connect().execution_options(isolation_level="AUTOCOMMIT")


class Bare:
    """Bare Dramatiq without confirms: the message carries its birth, and the third phase writes down its age."""

    def __init__(self, system: Peer) -> None:
        self.system, self.crew = system, system.crew

    def singles(self, jobs: int) -> list[float]:
        before = self._size()
        for n in range(1, jobs + 1):
            self.system.ask("single")
            lab.until(lambda n=n: len(self._ages(before)) >= n, timeout=30, pause=0.003)  # type: ignore[misc]
        return self._ages(before)

    def stream(self, rate: float, seconds: float) -> list[float]:
        before = self._size()
        sent = self.system.ask("pace", rate, seconds)
        lab.until(lambda: len(self._ages(before)) >= sent, timeout=30)
        return self._ages(before)

    def _size(self) -> int:
        return self.system.place.done.stat().st_size

    def _ages(self, before: int) -> list[float]:
        return [float(line) for line in self.system.place.done.read_bytes()[before:].splitlines()]


def _turn(chain: Chain, half: float, seconds: float) -> Measured:
    chain.crew.thaw()
    sleep(SETTLED)
    alone = chain.singles(SINGLES + WARM_UP)[WARM_UP:]
    loaded = chain.stream(half, seconds)
    chain.crew.freeze()
    return {
        "idle_p50": _percentile(alone, 0.5),
        "idle_p99": _percentile(alone, 0.99),
        "half_load_p50": _percentile(loaded, 0.5),
        "half_load_p99": _percentile(loaded, 0.99),
    }


def _half(system: Pipeline | Peer) -> float:
    return statistics.mean(system.pace() for _ in range(3)) / 2


def _percentiles(rounds: Rounds, side: str, kind: str) -> dict[str, float]:
    return {p: round(rounds.median(side, f"{kind}_{p}"), 1) for p in ("p50", "p99")}


def _percentile(seconds: Sequence[float], share: float) -> float:
    """In milliseconds."""
    return 1000 * sorted(seconds)[int(share * (len(seconds) - 1))]


def _cpu(system: Pipeline) -> float:
    return sum(_times(process) for process in system.family())


def _times(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
