"""One wave: jobs in, faults on, and the books."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chaos.crew import THREADS
from chaos.evidence import children, gather, hooks_jobs, tell, wait_for_the_end
from chaos.fault import Fault, Hits, Kill, Scene
from chaos.load import Load
from chaos.observer import Deadline, until
from chaos.reconcile import Findings, reconcile
from chaos.recovery import Recovery, percentiles, recoveries
from chaos.schedules import Schedules
from chaos.stage import Stage
from chaos.uniques import Uniques
from chaos.words import Words

UNDER_WAY = "SELECT count(*) FROM pipeline.attempts WHERE job_id = ANY (%s)"
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
            return Size(self.burst // 4, self.rate)
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
    management: bool = True
    uniques: Uniques | None = None
    words: Words | None = None
    # How some jobs are meant to end, if that is not by succeeding.
    meant: dict[UUID, str] = field(default_factory=dict)
    schedules: Schedules | None = None

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
            "hits": ", ".join(f"{hit.hits} {hit.unit}" for hit in self.hits if hit.unit),
            "lost": len(found.lost),
            "duplicated": len(found.duplicated),
            "unexplained": len(found.unexplained),
            "outcomes": dict(self.outcomes),
            "settled_s": round(self.settled, 1),
            "recovery_s": percentiles(self.samples) if self.kills else None,
            "consumers_back_s": max((s for hit in self.hits for s in hit.consumers_back), default=None),
            "skipped": self.skipped,
            "without_management": not self.management,
            "findings": [*found.lost, *found.duplicated, *found.unexplained][:20],
            "told": self.told,
        }


def run_wave(
    stage: Stage, faults: Sequence[Fault], label: str, size: Size, *, quick: bool, management: bool = True
) -> Wave:
    """Return when all jobs of the wave are final, or can no longer be expected to be.

    Without ``management`` the workers do not know the management address, unless a fault is about that.
    """
    wave, dice = Wave(faults), random.Random(stage.chance.random())  # noqa: S311  repeatable, not secret
    wave.management = management or any(fault.management for fault in faults)
    wave.skipped = next((reason for fault in faults if (reason := fault.impossible())), None)
    if wave.skipped:
        return wave
    stage.arrange(management=wave.management, proxied=any(fault.proxied for fault in faults))
    with ExitStack() as stack:
        try:
            place = stack.enter_context(faults[0].elsewhere(stage)) if faults[0].elsewhere else stage
        except Exception as error:
            wave.hits.append(Hits(complaints=[f"its own servers did not start: {type(error).__name__}: {error}"]))
            return wave
        _fill(place, wave, label, dice, size, quick=quick)
    return wave


def _fill(stage: Stage, wave: Wave, label: str, dice: random.Random, size: Size, *, quick: bool) -> None:
    faults = wave.faults
    load, chosen = Load(stage.subject, label, dice), size.of(faults)
    wave.uniques = uniques = Uniques(stage.subject, label, random.Random(dice.random()), stage.new_observer())  # noqa: S311
    wave.words = words = Words(load.waiting, random.Random(dice.random()))  # noqa: S311
    wave.schedules = schedules = Schedules(stage.subject, label, stage.new_observer())
    words.start()
    try:
        stage.crew.at_least(stage.observer, stage.crew.size)
        load.start(chosen.burst, chosen.rate)
        uniques.start()
        schedules.start()
        until(lambda: stage.observer.one(UNDER_WAY, list(load.jobs)) >= 3, 60, "the work to be under way")
    except Deadline as late:
        wave.hits.append(Hits(complaints=[f"before the fault: {late}"]))
    wave.hits += _act_all(stage, faults, dice, quick=quick)
    load.stop()
    uniques.stop()
    over = time.monotonic()
    own = load.jobs + [job for hit in wave.hits for job in hit.jobs]
    wave.jobs = own + [job for job in uniques.jobs if job not in own] + schedules.stop()
    wait_for_the_end(stage, wave.jobs, END_WITHIN)
    wave.settled = time.monotonic() - over
    words.stop()
    wave.jobs += children(stage, wave.jobs)
    wave.meant = {job: end for job, end in load.meant.items() if end != "succeeded"}
    told = hooks_jobs(stage, wave.jobs)
    wait_for_the_end(stage, told, END_WITHIN)
    wave.jobs += told
    judge(stage, wave)


def judge(stage: Stage, wave: Wave) -> None:
    """Do the books of the wave as they stand now."""
    failing = [job for job, end in wave.meant.items() if end == "failed"]
    cancelled = [job for hit in wave.hits for job in hit.cancelled] + [job for job in wave.meant if job not in failing]
    absences = [absence for hit in wave.hits for absence in hit.absent()]
    evidence = gather(
        stage,
        wave.jobs,
        cancelled,
        absences,
        failing=failing,
        uniques=wave.uniques,
        words=wave.words,
        schedules=wave.schedules,
    )
    explained = {outcome for fault in wave.faults for outcome in fault.explains}
    wave.findings = reconcile(evidence, explained)
    wave.findings.unexplained += [sentence for hit in wave.hits for sentence in hit.complaints]
    wave.findings.unexplained += wave.schedules.complaints if wave.schedules else []
    wave.outcomes = Counter(attempt.outcome for attempt in evidence.attempts)
    wave.recovered = recoveries(wave.kills, evidence.attempts, THREADS)
    slow = [one.job for one in sorted(wave.recovered, key=lambda one: -one.seconds) if one.seconds > SLOW]
    wave.told = [line for job in [*wave.findings.about[:TOLD], *slow[:TOLD]] for line in tell(stage, job)]


def _act_all(stage: Stage, faults: Sequence[Fault], dice: random.Random, *, quick: bool) -> list[Hits]:
    """All at the same time, each in a thread with eyes and dice of its own."""
    alone = len(faults) == 1
    scenes = [
        Scene(stage, stage.new_observer(), random.Random(dice.random()), quick, alone)  # noqa: S311
        for _ in faults
    ]
    with ThreadPoolExecutor(len(faults)) as threads:
        return list(threads.map(_act, faults, scenes))


def _act(fault: Fault, scene: Scene) -> Hits:
    """A fault that cannot be made is a complaint and does not end a run of an hour."""
    try:
        return fault.act(scene)
    except Exception as error:
        return Hits(complaints=[f"the fault {fault.name!r} could not be made: {type(error).__name__}: {error}"])
    finally:
        scene.observer.close()
