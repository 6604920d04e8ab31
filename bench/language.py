"""The language of workflows: what a step costs, and how soon whoever waits for a result has it."""

from __future__ import annotations

import statistics
from concurrent.futures import Future
from functools import partial
from threading import Event, Thread
from time import perf_counter, sleep, time
from typing import Any
from uuid import UUID

import psycopg

from bench import lab
from bench.latency import SETTLED, SINGLES, WARM_UP
from bench.paired import Figures, Measured, Plan, Rounds, merge
from bench.systems import Pipeline, pipeline
from bench.workflows.steps import STEPS
from pipeline import submit, submit_many
from pipeline.journey.ends import Ends

KEPT = "SELECT count(*) FROM pipeline.steps /* bench */"
# Whatever writes has a number, and nothing else has: no two transactions the same.
WRITERS = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint /* bench */"
COSTS = ("statements_a_step", "commits_a_step")
ENDED = "SELECT extract(epoch FROM completed_at) FROM pipeline.jobs WHERE id = %s /* bench */"
CANCEL = "SELECT pipeline.cancel(%s) /* bench */"
AWAITED = "SELECT count(*) FROM pipeline.outbox WHERE awaited /* bench */"
# Of everybody, the waiters of this process as well.
ALL = """SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
    WHERE d.datname = current_database() AND toplevel AND query NOT LIKE '%%pg_stat%%' AND query NOT LIKE '%%bench%%'"""
MANY, QUIET = 1000, 10.0


def steps(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Phases of ten steps under load: all statements and commits of the workers, for each step."""
    with (
        pipeline(laboratory, "steps", seconds=plan.seconds) as threads,
        pipeline(laboratory, "steps", "steps-loop", seconds=plan.seconds, name="steps-loop") as loop,
    ):
        sides = {"steps": partial(_turn, threads), "steps-loop": partial(_turn, loop)}
        rounds = Rounds(sides, plan.rounds, "steps_per_s", *COSTS)
    return merge(
        *(
            {cost: {side: round(rounds.median(side, cost), 3)} for cost in ("steps_per_s", *COSTS)}
            for side in ("steps", "steps-loop")
        )
    )


def _turn(system: Pipeline) -> Measured:
    writers, kept, statements = (_count(system, one) for one in (WRITERS, KEPT, None))
    rate = system.turn()["jobs_per_s"]
    made = _count(system, KEPT) - kept
    return {
        "steps_per_s": rate * 3 * STEPS,
        "statements_a_step": (_count(system, None) - statements) / made,
        "commits_a_step": (_count(system, WRITERS) - writers) / made,
    }


def _count(system: Pipeline, statement: str | None) -> int:
    return lab.statements(system.db) if statement is None else int(lab.one(system.db, statement))


def awaited(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """From the last transition of an idle job to the value in the waiter's hands; and what a thousand waiters cost."""
    with pipeline(laboratory, "defaults", "chain", name="awaited", seconds=plan.seconds) as system:
        system.crew.thaw()
        sleep(SETTLED)
        ends = Ends(system.place.url)
        took = [_woken(system, ends) for _ in range(WARM_UP + SINGLES * plan.rounds)][WARM_UP:]
        system.crew.freeze()
        after = [_after_commit(system, ends) for _ in range(WARM_UP + SINGLES * plan.rounds)][WARM_UP:]
        found = {
            # From the answer to the COMMIT that ends the job, and the same for a NOTIFY that nobody does anything with.
            "result_after_commit_ms": round(1000 * statistics.median(after), 2),
            "bare_notify_ms": round(1000 * statistics.median(_bare_notifies(system.place.url, plan)), 2),
            # The transition's own commit is in it: its clock stands still when the transaction begins.
            "result_after_transition_ms": round(1000 * statistics.median(took), 2),
            "statements_of_1000_waiters": _statements_of_many(system, ends),
        }
    print(f"  {found}")
    return found


def _woken(system: Pipeline, ends: Ends) -> float:
    with system.engine.begin() as connection:
        job = submit(connection, "chain", lab.BODY)
    woken: list[float] = []
    waiting = _wait(ends, job)
    waiting.add_done_callback(lambda _: woken.append(time()))
    waiting.result(30)
    lab.until(lambda: bool(woken), 30, 0.001)
    return woken[0] - float(lab.one(system.db, ENDED, job))


def _after_commit(system: Pipeline, ends: Ends) -> float:
    """The job is cancelled here: every end tells whoever waits in the same way."""
    with system.engine.begin() as connection:
        job = submit(connection, "chain", lab.BODY)
    woken: list[float] = []
    waiting = _wait(ends, job)
    waiting.add_done_callback(lambda _: woken.append(perf_counter()))
    lab.until(lambda: int(lab.one(system.db, AWAITED)) == 1, 30, 0.001)
    lab.one(system.db, CANCEL, job)
    committed = perf_counter()
    waiting.result(30)
    lab.until(lambda: bool(woken), 30, 0.001)
    return woken[0] - committed


def _bare_notifies(url: str, plan: Plan) -> list[float]:
    """As long as it takes on this machine, now: one connection listens, another says something."""
    heard, come, took = [0.0], Event(), []

    def listen() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("LISTEN bare")
            come.set()
            for _ in connection.notifies(stop_after=WARM_UP + SINGLES * plan.rounds):
                heard[0] = perf_counter()
                come.set()

    thread = Thread(target=listen, daemon=True)
    thread.start()
    come.wait(30)
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(WARM_UP + SINGLES * plan.rounds):
            come.clear()
            connection.execute("NOTIFY bare")
            committed = perf_counter()
            come.wait(30)
            took.append(heard[0] - committed)
    thread.join(30)
    return took[WARM_UP:]


def _statements_of_many(system: Pipeline, ends: Ends) -> int:
    """In ten seconds in which no job ends: the workers are frozen."""
    with system.engine.begin() as connection:
        jobs = submit_many(connection, "chain", [lab.BODY] * MANY)
    waiting = [_wait(ends, job) for job in jobs]
    lab.until(lambda: int(lab.one(system.db, AWAITED)) == MANY)
    before = int(lab.one(system.db, ALL))
    sleep(QUIET)
    sent = int(lab.one(system.db, ALL)) - before
    for one in waiting:
        one.cancel()
    return sent


def _wait(ends: Ends, job: UUID) -> Future[Any]:
    """What ``handle.result()`` waits for."""
    return ends.wait(job, "end", lambda status: status is None or status.is_final)
