"""One wave: jobs in, faults on, and the books."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chaos.crew import THREADS
from chaos.evidence import gather, tell, wait_for_the_end
from chaos.fault import Fault, Hits, Kill, Scene, Skipped
from chaos.load import Load
from chaos.observer import until
from chaos.reconcile import Findings, reconcile
from chaos.recovery import Recovery, percentiles, recoveries
from chaos.stage import Stage

UNDER_WAY = "SELECT count(*) FROM attempts WHERE job_id = ANY (%s)"
END_WITHIN = 180.0
TOLD = 3
SLOW = 2.0


@dataclass(frozen=True)
class Size:
    """How many jobs at once, and how many a second while the faults last."""

    burst: int
    rate: float

    def of(self, faults: Sequence[Fault]) -> Size:
        """A kill is measured while threads are free; a purge needs messages in the queues."""
        loads = {fault.load for fault in faults}
        if "calm" in loads:
            return Size(self.burst // 3, self.rate)
        return Size(self.burst * 2, self.rate) if "deep" in loads else self


@dataclass
class Wave:
    """What one wave did and found."""

    faults: Sequence[Fault]
    jobs: list[UUID] = field(default_factory=list)
    hits: list[Hits] = field(default_factory=list)
    skipped: str | None = None
    settled: float = 0.0
    recovered: list[Recovery] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)
    told: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return " + ".join(fault.name for fault in self.faults)

    @property
    def samples(self) -> list[float]:
        return [one.seconds for one in self.recovered]

    @property
    def kills(self) -> list[Kill]:
        return [kill for hit in self.hits for kill in hit.kills]

    def as_json(self) -> dict[str, Any]:
        """Figures, and the sentences of what was found."""
        found = self.findings
        return {
            "jobs": len(self.jobs),
            "hits": ", ".join(f"{hit.hits} {hit.unit}" for hit in self.hits),
            "lost": len(found.lost), "duplicated": len(found.duplicated), "unexplained": len(found.unexplained),
            "outcomes": dict(self.outcomes), "settled_s": round(self.settled, 1),
            "recovery_s": percentiles(self.samples) if self.kills else None,
            "consumers_back_s": max((s for hit in self.hits for s in hit.consumers_back), default=None),
            "skipped": self.skipped,
            "findings": [*found.lost, *found.duplicated, *found.unexplained][:20], "told": self.told,
        }  # fmt: skip


def run_wave(stage: Stage, faults: Sequence[Fault], label: str, size: Size, *, quick: bool) -> Wave:
    """Return when all jobs of the wave are final, or can no longer be expected to be."""
    wave, dice = Wave(faults), random.Random(stage.chance.random())  # noqa: S311  repeatable, not secret
    stage.crew.at_least(stage.observer, stage.crew.size)
    load, chosen = Load(stage.subject, label, dice), size.of(faults)
    load.start(chosen.burst, chosen.rate)
    until(lambda: stage.observer.one(UNDER_WAY, list(load.jobs)) >= 3, 60, "the work to be under way")
    try:
        wave.hits = _act_all(stage, faults, dice, quick=quick)
    except Skipped as reason:
        wave.skipped = str(reason)
    load.stop()
    over = time.monotonic()
    wave.jobs = load.jobs
    wait_for_the_end(stage, wave.jobs, END_WITHIN)
    wave.settled = time.monotonic() - over
    judge(stage, wave)
    return wave


def judge(stage: Stage, wave: Wave) -> None:
    """Do the books of the wave as they stand now."""
    evidence = gather(stage, wave.jobs)
    explained = {outcome for fault in wave.faults for outcome in fault.explains}
    wave.findings = reconcile(evidence, explained)
    wave.outcomes = Counter(attempt.outcome for attempt in evidence.attempts)
    wave.recovered = recoveries(wave.kills, evidence.attempts, THREADS)
    slow = [one.job for one in sorted(wave.recovered, key=lambda one: -one.seconds) if one.seconds > SLOW]
    wave.told = [line for job in [*wave.findings.about[:TOLD], *slow[:TOLD]] for line in tell(stage, job)]


def _act_all(stage: Stage, faults: Sequence[Fault], dice: random.Random, *, quick: bool) -> list[Hits]:
    """All at the same time, each in a thread with eyes and dice of its own."""
    hits: dict[int, Hits] = {}
    errors: list[Exception] = []

    def act(place: int, fault: Fault, seed: float) -> None:
        observer = stage.new_observer()
        try:
            hits[place] = fault.act(Scene(stage, observer, random.Random(seed), quick))  # noqa: S311
        except Exception as error:
            errors.append(error)
        finally:
            observer.close()

    threads = [
        threading.Thread(target=act, args=(place, fault, dice.random()), name=fault.name, daemon=True)
        for place, fault in enumerate(faults)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [hits[place] for place in sorted(hits)]
