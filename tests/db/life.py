"""Several jobs, several workers and claims that outlive their right: each step is taken in PostgreSQL and in the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from pipeline.declare.states import Status, Step
from tests.db import steps
from tests.db.dice import Dice
from tests.db.model import PHASES, Job, claim_verdict
from tests.db.steps import Db, Hold
from tests.db.truths import BROKEN

BEGIN = ["triple", "triple", "pooled", "pooled", "pooled", "pooled"]
COLUMNS = ("status", "phase", "fence", "send", "attempts", "crashes", "locked_by", "batch_id")
BELIEF = {"locked_by": "holder", "batch_id": "batch"}


class Life:
    """Every method is a step; after each one ``check`` must hold."""

    def __init__(self, db: Db) -> None:
        self.db = db
        db.execute("SELECT pg_advisory_unlock_all()")
        db.execute(
            "TRUNCATE pipeline.jobs, pipeline.outbox, pipeline.attempts, pipeline.batches, pipeline.workers CASCADE"
        )
        db.execute("UPDATE pipeline.places SET job_id = NULL")
        self.jobs: dict[UUID, Job] = {}
        self.holds: list[Hold] = []
        self.living: dict[str, int] = {}
        self.batches = [steps.open_batch(db, "plain")]
        for n, workflow in enumerate(BEGIN):
            self._submit(workflow, self.batches[0] if n % 2 else None)

    # ---- workers

    def kill_worker(self, dice: Dice) -> None:
        steps.die(self.db, self.living.pop(self._worker(dice)))

    def reclaim(self, dice: Dice) -> None:
        lost = [job for job in self.jobs.values() if job.holder is not None and job.holder not in self.living]
        expected = {job.id: job.crash(counts=not job.isolated) for job in lost}
        assert {row["job_id"]: row["verdict"] for row in steps.reclaim(self.db)} == expected

    def heartbeat(self, dice: Dice) -> None:
        worker = self._worker(dice)
        mine = [hold for hold in self.holds if hold.worker == worker]
        ids, fences = [hold.job for hold in mine], [hold.fence for hold in mine]
        statement = "SELECT * FROM pipeline.heartbeat(%s, %s::uuid[], %s::bigint[], NULL, '{}')"
        told = {(row["job_id"], row["fence"]) for row in steps.rows(self.db, statement, worker, ids, fences)}
        assert told == {(hold.job, hold.fence) for hold in mine if not self.jobs[hold.job].held_by(hold.fence)}

    # ---- submitting and sending

    def submit(self, dice: Dice) -> None:
        batch = self.batches[-1]
        sealed = steps.batch(self.db, batch)["sealed"]
        self._submit(sorted(PHASES)[dice.who % len(PHASES)], batch if dice.flag and not sealed else None)

    def open_batch(self, dice: Dice) -> None:
        self.batches.append(steps.open_batch(self.db, "plain"))

    def seal_batch(self, dice: Dice) -> None:
        steps.seal(self.db, self.batches[dice.which % len(self.batches)])

    def admit(self, dice: Dice) -> None:
        self._admit(dice.times)

    def unsend(self, dice: Dice) -> None:
        if dice.flag:
            self._admit(100)
        job = self._job(dice, Step.CLAIM)
        taken_back = job.waits and job.sent and dice.off == 0
        assert self._call(taken_back, steps.unsend, job.id, job.send + dice.off) == int(taken_back)
        if taken_back:
            job.send, job.sent = job.send + 1, False

    def timed_waits_end(self, dice: Dice) -> None:
        self.db.execute("UPDATE pipeline.outbox SET due_at = now() WHERE due_at IS NOT NULL")
        for job in self.jobs.values():
            job.later = False

    # ---- claiming

    def claim(self, dice: Dice) -> None:
        """A token that is not out cannot come in: then it is a bare message."""
        job = self._job(dice, Step.CLAIM)
        bare = dice.off == 0 and job.waits and not job.sent
        self._claim(job, self._worker(dice), None if bare else job.send + dice.off, dice.flag)

    def run_what_waits(self, dice: Dice) -> None:
        """The usual way, so that lives get long: all that waits is sent and claimed, and ended in the same way."""
        for _ in range(dice.times):
            self._run(dice)
            if not dice.flag:
                return
            for hold in self._right():
                self._end(hold, dice.how, dice.how == "crash")

    def take_over(self, dice: Dice) -> None:
        hold = self._hold(dice)
        if hold is None:
            return
        if dice.flag and hold.worker in self.living:
            steps.die(self.db, self.living.pop(hold.worker))
        job, worker = self.jobs[hold.job], self._worker(dice)
        current = job.held_by(hold.fence) and job.holder == hold.worker
        dead = current and (hold.worker not in self.living or hold.worker == worker)
        expected = job.take_over(worker) if dead else "held" if current else "changed"
        assert self._call(dead, steps.take_over, hold, worker) == expected
        if expected == "claimed":
            self.holds.append(Hold(job.id, job.fence, worker))

    # ---- ending an attempt

    def complete(self, dice: Dice) -> None:
        hold = self._hold(dice)
        if hold is not None:
            job = self.jobs[hold.job]
            won, repeated = job.held_by(hold.fence), job.outcomes.get(hold.fence) == "succeeded"
            following = None if job.last_phase or not dice.flag else PHASES[job.workflow][job.place + 1]
            waiting = any(one.waits and not one.sent and one.phase == following for one in self.jobs.values())
            continuing = following and f"{job.workflow}.{following}"
            answer = self._call(won, partial(steps.complete, continuing=continuing), hold)
            if not won:
                still = job.carried and job.held_by(hold.fence + 1)
                assert answer["verdict"] == ("lost" if not repeated else "continued" if still else "repeated")
                return
            continues = answer["verdict"] == "continued"
            assert waiting or continues == bool(following), "nobody waits before the next phase"
            assert answer["verdict"] == job.complete(continues)
            if continues:
                self.holds.append(Hold(job.id, answer["fence"], hold.worker))

    def end(self, dice: Dice) -> None:
        hold = self._hold(dice)
        if hold is not None:
            self._end(hold, dice.how, dice.flag)

    # ---- from outside

    def cancel(self, dice: Dice) -> None:
        job = self._job(dice, Step.CANCEL)
        self._ask(job.allows(Step.CANCEL), job.cancel, steps.cancel, job.id)

    def replay(self, dice: Dice) -> None:
        job = self._job(dice, Step.REPLAY)
        # A message revives what failed with it, and nothing that somebody cancelled.
        revived = dice.off == 0 and job.status is Status.FAILED
        possible = job.allows(Step.REPLAY) and (dice.flag or revived)
        self._ask(possible, job.replay, steps.replay, job.id, None if dice.flag else job.send + dice.off)

    def discard(self, dice: Dice) -> None:
        job = self._job(dice, Step.DISCARD)
        self._ask(job.allows(Step.DISCARD), job.discard, steps.discard, job.id)

    def undeliverable(self, dice: Dice) -> None:
        job = self._job(dice, Step.UNDELIVERABLE)
        possible = job.allows(Step.UNDELIVERABLE) and dice.off == 0
        self._ask(possible, job.undeliverable, steps.undeliverable, job.id, job.send + dice.off)

    def expire(self, dice: Dice) -> None:
        """Its time is over, whatever it was."""
        job = self._job(dice, Step.EXPIRE)
        self.db.execute("UPDATE pipeline.jobs SET expires_at = now() WHERE id = %s", (job.id,))
        possible = job.allows(Step.EXPIRE) and job.fence == 0
        assert self._call(possible, steps.expire, job.id) == int(possible)
        if possible:
            job.expire()
        else:
            self.db.execute("UPDATE pipeline.jobs SET expires_at = NULL WHERE id = %s", (job.id,))

    # ---- what always holds

    def check(self) -> None:
        found = steps.rows(self.db, "SELECT * FROM pipeline.jobs WHERE workflow <> 'plain'")
        seen = {row["id"]: (*(row[name] for name in COLUMNS), bool(row["counted"])) for row in found}
        assert seen == {
            job.id: (*(getattr(job, BELIEF.get(name, name)) for name in COLUMNS), job.counted)
            for job in self.jobs.values()
        }
        for truth, statement in BROKEN.items():
            assert steps.rows(self.db, statement) == [], truth

    # ---- the parts of steps

    def _run(self, dice: Dice) -> None:
        self.timed_waits_end(dice)
        self._admit(100)
        for job in [job for job in self.jobs.values() if job.sent]:
            self._claim(job, self._worker(dice), job.send, False)

    def _right(self) -> list[Hold]:
        return [hold for hold in self.holds if self.jobs[hold.job].held_by(hold.fence)]

    def _submit(self, workflow: str, batch: UUID | None) -> None:
        job_id = steps.submit(self.db, workflow, batch=batch)
        self.jobs[job_id] = Job(job_id, workflow, batch)

    def _admit(self, most: int) -> None:
        for row in steps.admit(self.db, most):
            job = self.jobs.get(row["job_id"])
            if job is not None:
                assert (job.waits, job.sent, job.later) == (True, False, False)
                assert (row["send"], row["attempt"]) == (job.send, job.attempts + 1)
                job.sent = True

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

    def _end(self, hold: Hold, how: str, flag: bool) -> None:
        """``flag``: it waits for a time, or the crash counts."""
        job, delay = self.jobs[hold.job], steps.FUTURE * flag
        ways: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "retry": (lambda: job.retry(flag), steps.retry, (delay,)),
            "crash": (lambda: job.crash(flag), steps.crash, (flag,)),
            "snooze": (lambda: job.snooze("snoozed", flag), steps.snooze, (delay,)),
            "release": (lambda: job.snooze("released", False), steps.snooze, (0.0, "released")),
            "fail": (job.fail, steps.fail, ()),
        }
        believe, step, values = ways[how]
        won = job.held_by(hold.fence)
        expected = believe() if won else job.outcomes.get(hold.fence, "lost")
        assert self._call(won, step, hold, *values) == expected

    def _call(self, may_change: bool, step: Any, *values: Any) -> Any:
        """Take the step in PostgreSQL; one that must be refused must change nothing."""
        if may_change:
            return step(self.db, *values)
        with steps.nothing_changes(self.db):
            return step(self.db, *values)

    def _ask(self, possible: bool, believe: Callable[[], None], step: Any, *values: Any) -> None:
        """A step that answers whether it was taken: by PostgreSQL and by the model, or by neither."""
        assert self._call(possible, step, *values) is possible
        if possible:
            believe()

    # ---- choosing: mostly what is possible, sometimes anything

    def _job(self, dice: Dice, step: Step) -> Job:
        able = [job for job in self.jobs.values() if job.allows(step)] if dice.which % 4 else []
        chosen = able or list(self.jobs.values())
        return chosen[dice.which // 4 % len(chosen)]

    def _hold(self, dice: Dice) -> Hold | None:
        if dice.which % 4 and not self._right():
            self._run(dice)
        chosen = (self._right() if dice.which % 4 else []) or self.holds
        if not chosen:
            return None
        hold = chosen[dice.which // 4 % len(chosen)]
        return Hold(hold.job, hold.fence + dice.off, hold.worker)

    def _worker(self, dice: Dice) -> str:
        """A living one; a new one is started when there are too few."""
        if len(self.living) < 2:
            name = f"w-{uuid4().hex[:6]}"
            self.living[name] = steps.sign_on(self.db, name)
        return list(self.living)[dice.who % len(self.living)]
