"""Phases of ten steps whose processes are killed at random: no step is called again once its result was kept."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict
from uuid import UUID

import pytest

from pipeline import submit_many
from pipeline.declare.job import decode
from tests.forked import supervised
from tests.place import ISOLATED, Place, lives
from tests.step_notes import Note, notes

WORKFLOWS = ("stepped", "strolled")
STEPS = 10
# At least so many kills hit a child: jobs come there after a crash.
CHILDREN = 10
# Jobs that are not done, so that a kill hits some.
BUSY = 60
OPEN = "SELECT count(*) FROM pipeline.jobs WHERE completed_at IS NULL"
CUT_OFF = "SELECT count(*) FROM pipeline.attempts WHERE outcome NOT IN ('succeeded', 'released')"


class Killer:
    """Kills processes of which it knows that they run steps: workers, and the children of workers."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self._place = place
        self._chance = chance
        self.workers = self.children = 0

    def strike(self, *, worker: bool) -> None:
        """One worker with all that it runs; or some children that run a job's steps now."""
        for victim in self._one_worker() if worker else self._some_children():
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.workers += worker
            self.children += not worker

    def _one_worker(self) -> list[int]:
        booted = self._place.booted()
        # One stays, so that the others' jobs go on.
        return [self._chance.choice(booted)] if len(booted) > 1 else []

    def _some_children(self) -> list[int]:
        running = {row["id"] for row in self._place.rows("SELECT id FROM pipeline.jobs WHERE status = 'running'")}
        last = {note.job: note.pid for note in notes(self._place) if note.job in running}
        workers = set(self._place.pids())
        pids = sorted(pid for pid in set(last.values()) - workers if lives(pid))
        return self._chance.sample(pids, min(len(pids), self._chance.randint(1, 5)))


def kill_and_check(place: Place, kills: int, timeout: float) -> None:
    """Until so many attempts were cut off; then every job ends, and what was noted is checked."""
    supervisor = supervised(place, 3, threads=6, PIPELINE_WORKFLOWS=ISOLATED)
    chance = random.Random(11)
    killer, began = Killer(place, chance), time.monotonic()
    jobs: list[UUID] = []
    supervisor.start()
    try:
        place.until(place.booted, 30, "workers")
        while place.count(CUT_OFF) < kills or killer.children < CHILDREN:
            assert time.monotonic() - began < timeout, (
                f"{place.count(CUT_OFF)} of {kills} kills\n{place.logs()[-3000:]}"
            )
            if place.count(OPEN) < BUSY:
                for workflow in WORKFLOWS:
                    jobs += submit_many(None, workflow, [{"seconds": 0.15}] * (BUSY // 2))
            killer.strike(worker=chance.random() < 0.15)
            time.sleep(chance.uniform(0.02, 0.2))
        rows = place.finished(*jobs, timeout=60)
    finally:
        supervisor.stop()
    assert {row["status"] for row in rows} == {"succeeded"}
    check(place, {row["id"]: row["result"]["act"]["ats"] for row in rows})
    print(
        f"\n{killer.workers} workers and {killer.children} children killed in {time.monotonic() - began:.0f} s; "
        f"{place.count(CUT_OFF)} attempts of {len(jobs)} jobs cut off; "
        f"{sum(note.what == 'step' for note in notes(place))} calls of {len(jobs) * STEPS} steps"
    )


def check(place: Place, results: dict[UUID, list[int]]) -> None:
    """Of every job: how often it was hit bounds how often a step was called, and all attempts saw the same."""
    hits: Counter[UUID] = Counter()
    for row in place.rows("SELECT job_id FROM pipeline.attempts WHERE outcome <> 'succeeded'"):
        hits[row["job_id"]] += 1
    kept = {
        (row["job_id"], row["name"]): (row["fence"], decode(row["value"])["at"])
        for row in place.rows("SELECT job_id, name, fence, value FROM pipeline.steps")
    }
    assert len(kept) == len(results) * STEPS
    by_step: defaultdict[tuple[UUID, str], list[Note]] = defaultdict(list)
    for note in notes(place):
        by_step[note.job, note.name].append(note)
    for (job, name), noted in by_step.items():
        fence, at = kept[job, name]
        called = [note.value for note in noted if note.what == "step"]
        assert 1 <= len(called) <= 1 + hits[job], (job, name, noted)
        # The attempt that kept it was the last one that called it.
        assert called[-1] == fence == max(called), (job, name, fence, noted)
        assert len(set(called)) == len(called), (job, name, noted)
        assert {note.value for note in noted if note.what == "got"} == {at}, (job, name, at, noted)
        assert results[job][int(name[1:])] == at


@pytest.mark.timeout(200)
def test_no_step_is_called_again_once_its_result_was_kept(place: Place) -> None:
    """G2, G3: thirty attempts in threads, on event loops and in children are cut off by kill -9."""
    kill_and_check(place, 30, timeout=120)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [200, 2000])
def test_many_kills_change_nothing_about_that(place: Place, kills: int) -> None:
    """The same for longer."""
    kill_and_check(place, kills, timeout=900)
