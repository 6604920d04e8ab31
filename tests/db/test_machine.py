"""Any order of steps, by right and by stale holders: PostgreSQL and the model agree after each one."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pipeline.rules.state_machine import Step
from tests.db import steps
from tests.db.model import PHASES, Job, claim_verdict
from tests.db.steps import Db, Hold
from tests.db.truths import BROKEN

STEADY = settings(
    max_examples=40, stateful_step_count=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
OFF = st.sampled_from([0, 0, 0, 0, -1, 1])
ANY = st.integers(min_value=0, max_value=10**6)
ENDS = ["retry", "crash", "park", "hand_back", "fail"]


class Life(RuleBasedStateMachine):
    """Several jobs, several workers, and claims that outlive their right."""

    db: Db

    @initialize()
    def begin(self) -> None:
        self.db.execute("SELECT pg_advisory_unlock_all()")
        self.db.execute("TRUNCATE jobs, outbox, attempts, batches, workers CASCADE")
        self.jobs: dict[UUID, Job] = {}
        self.holds: list[Hold] = []
        self.batches: list[UUID] = []
        self.living: dict[str, int] = {}
        self.start_worker()
        self.start_worker()
        self.open_batch()
        for n, workflow in enumerate(["triple", "single", "pooled", "pooled", "pooled", "pooled"]):
            self.submit(workflow, n)

    # ---- workers

    @precondition(lambda self: len(self.living) < 3)
    @rule()
    def start_worker(self) -> None:
        name = f"w-{uuid4().hex[:6]}"
        self.living[name] = steps.sign_on(self.db, name)

    @precondition(lambda self: self.living)
    @rule(which=ANY)
    def kill_worker(self, which: int) -> None:
        steps.die(self.db, self.living.pop(self._worker(which)))

    @rule()
    def reclaim(self) -> None:
        lost = [job for job in self.jobs.values() if job.holder is not None and job.holder not in self.living]
        expected = {job.id: job.crash(counts=not job.isolated) for job in lost}
        assert {row["job_id"]: row["verdict"] for row in steps.reclaim(self.db)} == expected

    @precondition(lambda self: self.living)
    @rule(which=ANY)
    def heartbeat(self, which: int) -> None:
        worker = self._worker(which)
        mine = [hold for hold in self.holds if hold.worker == worker]
        ids, fences = [hold.job for hold in mine], [hold.fence for hold in mine]
        statement = "SELECT * FROM pipeline_heartbeat(%s, %s::uuid[], %s::bigint[], NULL, '{}')"
        told = {(row["job_id"], row["fence"]) for row in steps.rows(self.db, statement, worker, ids, fences)}
        assert told == {(hold.job, hold.fence) for hold in mine if not self.jobs[hold.job].held_by(hold.fence)}

    # ---- submitting and sending

    @precondition(lambda self: len(self.jobs) < 9)
    @rule(workflow=st.sampled_from(sorted(PHASES)), which=ANY)
    def submit(self, workflow: str, which: int) -> None:
        open_ones = [batch for batch in self.batches if not steps.batch(self.db, batch)["sealed"]]
        batch = open_ones[which % len(open_ones)] if open_ones and which % 3 else None
        job_id = steps.submit(self.db, workflow, batch=batch)
        self.jobs[job_id] = Job(job_id, workflow, batch)

    @precondition(lambda self: len(self.batches) < 2)
    @rule()
    def open_batch(self) -> None:
        self.batches.append(steps.open_batch(self.db, "plain"))

    @precondition(lambda self: self.batches)
    @rule(which=ANY)
    def seal_batch(self, which: int) -> None:
        steps.seal(self.db, self.batches[which % len(self.batches)])

    @rule(most=st.integers(min_value=1, max_value=5))
    def admit(self, most: int) -> None:
        for row in steps.admit(self.db, most):
            if row["job_id"] in self.jobs:
                job = self.jobs[row["job_id"]]
                assert job.waits
                assert not job.sent
                assert not job.later
                assert (row["send"], row["attempt"]) == (job.send, job.attempts + 1)
                job.sent = True

    @rule(which=ANY, off=OFF)
    def unsend(self, which: int, off: int) -> None:
        job = self._job(which, Step.CLAIM)
        taken_back = job.waits and job.sent and off == 0
        assert self._call(taken_back, steps.unsend, job.id, job.send + off) == int(taken_back)
        if taken_back:
            job.send, job.sent = job.send + 1, False

    @rule()
    def timed_waits_end(self) -> None:
        self.db.execute("UPDATE outbox SET due_at = now() WHERE due_at IS NOT NULL")
        for job in self.jobs.values():
            job.later = False

    # ---- claiming

    @precondition(lambda self: self.living)
    @rule(which=ANY, who=ANY, off=st.sampled_from([0, 0, 0, 0, -1, 1, None]), twice=st.booleans())
    def claim(self, which: int, who: int, off: int | None, twice: bool) -> None:
        job = self._job(which, Step.CLAIM)
        bare = off is None or (off == 0 and job.waits and not job.sent)  # a token that is not out cannot come in
        self._claim(job, self._worker(who), None if bare else job.send + (off or 0), twice)

    def _claim(self, job: Job, worker: str, send: int | None, twice: bool) -> None:
        expected = claim_verdict(job, send, self.jobs.values())
        asks = [steps.ask(self.db, job.id, send) for _ in range(1 + twice)]
        answers = self._call(expected in ("claimed", "pool_full"), steps.claim_all, asks, worker)
        assert answers[0]["verdict"] == expected
        if expected == "claimed":
            assert [row["verdict"] for row in answers[1:]] == ["running"] * twice
            job.claim(worker)
            self.holds.append(Hold(job.id, answers[0]["fence"], worker))
        if expected == "pool_full":
            job.send, job.sent = job.send + 1, False

    @precondition(lambda self: self.living)
    @rule(who=ANY, how=st.sampled_from(["", "", "complete", *ENDS]), times=st.integers(min_value=1, max_value=3))
    def run_what_waits(self, who: int, how: str, times: int) -> None:
        """The usual way, so that lives get long: all that waits is sent, claimed, and ended in the same way."""
        for _ in range(times if how else 1):
            self.timed_waits_end()
            self.admit(100)
            for job in [job for job in self.jobs.values() if job.sent]:
                self._claim(job, self._worker(who), job.send, False)
            for hold in [hold for hold in self.holds if how and self.jobs[hold.job].held_by(hold.fence)]:
                self._complete(hold) if how == "complete" else self._end(hold, how, how == "crash")

    @precondition(lambda self: self.living and self.holds)
    @rule(which=ANY, who=ANY, off=OFF, dies=st.booleans())
    def take_over(self, which: int, who: int, off: int, dies: bool) -> None:
        hold = self._hold(which, off)
        if dies and hold.worker in self.living and len(self.living) > 1:
            steps.die(self.db, self.living.pop(hold.worker))
        job, worker = self.jobs[hold.job], self._worker(who)
        current = job.held_by(hold.fence) and job.holder == hold.worker
        dead = current and hold.worker not in self.living
        expected = job.take_over(worker) if dead else "held" if current else "changed"
        assert self._call(dead, steps.take_over, hold, worker) == expected
        if expected == "claimed":
            self.holds.append(Hold(job.id, job.fence, worker))

    # ---- ending an attempt

    @precondition(lambda self: self.holds)
    @rule(which=ANY, off=OFF)
    def complete(self, which: int, off: int) -> None:
        self._complete(self._hold(which, off))

    def _complete(self, hold: Hold) -> None:
        job = self.jobs[hold.job]
        won = job.held_by(hold.fence)
        answer = self._call(won, steps.complete, hold)
        repeated = job.outcomes.get(hold.fence) == "succeeded"
        sent = answer["sent_at"] is not None
        assert answer["verdict"] == (job.complete(sent) if won else "repeated" if repeated else "lost")

    @precondition(lambda self: self.holds)
    @rule(which=ANY, off=OFF, how=st.sampled_from(ENDS), later=st.booleans())
    def end(self, which: int, off: int, how: str, later: bool) -> None:
        self._end(self._hold(which, off), how, later)

    def _end(self, hold: Hold, how: str, later: bool) -> None:
        job, delay = self.jobs[hold.job], steps.FUTURE * later
        in_sql: dict[str, Any] = {
            "retry": (steps.retry, delay), "fail": (steps.fail,), "crash": (steps.crash, later),
            "park": (steps.park, delay), "hand_back": (steps.park, 0.0, "handed_back"),
        }  # fmt: skip
        in_model: dict[str, Any] = {
            "retry": lambda: job.retry(later), "fail": job.fail, "crash": lambda: job.crash(later),
            "park": lambda: job.park("parked", later), "hand_back": lambda: job.park("handed_back", False),
        }  # fmt: skip
        won = job.held_by(hold.fence)
        step, *values = in_sql[how]
        expected = in_model[how]() if won else job.outcomes.get(hold.fence, "lost")
        assert self._call(won, step, hold, *values) == expected

    # ---- from outside

    @rule(which=ANY)
    def cancel(self, which: int) -> None:
        job = self._job(which, Step.CANCEL)
        possible = job.allows(Step.CANCEL)
        assert self._call(possible, steps.cancel, job.id) is possible
        if possible:
            job.cancel()

    @rule(which=ANY, off=st.sampled_from([0, 0, -1, 1, None]))
    def replay(self, which: int, off: int | None) -> None:
        job = self._job(which, Step.REPLAY)
        possible = job.allows(Step.REPLAY) and not off
        assert self._call(possible, steps.replay, job.id, None if off is None else job.send + off) is possible
        if possible:
            job.replay()

    @rule(which=ANY, off=st.sampled_from([0, -1, 1]))
    def undeliverable(self, which: int, off: int) -> None:
        job = self._job(which, Step.UNDELIVERABLE)
        possible = job.allows(Step.UNDELIVERABLE) and off == 0
        assert self._call(possible, steps.undeliverable, job.id, job.send + off) is possible
        if possible:
            job.undeliverable()

    # ---- what always holds

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        found = {row["id"]: row for row in steps.rows(self.db, "SELECT * FROM jobs WHERE workflow <> 'plain'")}
        seen = {job_id: tuple(row[name] for name in COLUMNS) for job_id, row in found.items()}
        believed = {
            job.id: tuple(getattr(job, BELIEF.get(name, name)) for name in COLUMNS) for job in self.jobs.values()
        }
        assert {job_id: (*row[:-1], bool(row[-1])) for job_id, row in seen.items()} == believed

    @invariant()
    def nothing_is_broken(self) -> None:
        for truth, statement in BROKEN.items():
            assert steps.rows(self.db, statement) == [], truth

    # ---- choosing

    def _job(self, which: int, step: Step) -> Job:
        """Mostly one that allows the step."""
        able = [job for job in self.jobs.values() if job.allows(step)] if which % 4 else []
        chosen = able or list(self.jobs.values())
        return chosen[which // 4 % len(chosen)]

    def _worker(self, which: int) -> str:
        return list(self.living)[which % len(self.living)]

    def _hold(self, which: int, off: int) -> Hold:
        """Mostly one that is still right; ``off`` spoils the fence."""
        right = [hold for hold in self.holds if self.jobs[hold.job].held_by(hold.fence)] if which % 4 else []
        chosen = right or self.holds
        hold = chosen[which // 4 % len(chosen)]
        return Hold(hold.job, hold.fence + off, hold.worker)

    def _call(self, may_change: bool, step: Any, *values: Any) -> Any:
        """Call the step; one that should be refused must change nothing."""
        if may_change:
            return step(self.db, *values)
        with steps.nothing_changes(self.db):
            return step(self.db, *values)


COLUMNS = ("status", "phase", "fence", "send", "attempts", "crashes", "locked_by", "batch_id", "counted")
BELIEF = {"locked_by": "holder", "batch_id": "batch"}


def test_any_order_of_steps_keeps_the_rules(database: Db) -> None:
    """Rows, fences, send numbers, budgets, pools, history and batches, after every single step."""
    machine = type("LifeHere", (Life,), {"db": database})
    run_state_machine_as_test(machine, settings=STEADY)  # type: ignore[no-untyped-call]
