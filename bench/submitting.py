"""Submitting: single jobs by many clients at once, and many jobs in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

import orjson

from bench import lab
from bench.clients import Clients, clients
from bench.paired import RATE, Figures, Measured, Plan, Rounds, Side, merge, real
from bench.systems import Pipeline
from pipeline import submit_many
from pipeline.store.gateway.client import as_array

CLIENTS = (1, 8, 32)
GROUP = 5000
COLUMNS = "workflow, trace_id, span_id, priority, body, phase, max_attempts"
BATCH = f"""INSERT INTO plain_batch ({COLUMNS})
    SELECT 'busy', repeat('0', 31) || '1', repeat('0', 15) || '1', 0, b, 'one', 3 FROM unnest(%s::jsonb[]) b"""


def single(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Single submits by 1, 8 and 32 clients, a transaction each, against a plain INSERT of two rows."""
    with (
        _busy(laboratory) as (place, workers),
        clients("pipeline", place, max(CLIENTS)) as ours,
        clients("plain", place, max(CLIENTS)) as plain,
    ):

        def turn(rate: Clients, count: int) -> Measured:
            if rate is ours:
                workers.crew.thaw()
            found = rate(count, plan.seconds / 2)
            workers.crew.freeze()
            return {RATE: found}

        ways = {"submit": ours, "insert": plain}
        sides = {f"{name}_{n}": partial(turn, rate, n) for n in CLIENTS for name, rate in ways.items()}
        rounds = Rounds(sides, plan.rounds)
    return merge(
        {"submits_per_s": {side: round(rounds.median(side)) for side in sides}},
        real(**{f"submit_{n}_vs_insert": rounds.ratio(f"submit_{n}", f"insert_{n}") for n in CLIENTS}),
    )


def batched(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """submit_many, against a plain batched INSERT of the same rows into a table like ours.

    The plain one is measured twice: with a list of bodies, as one would write it, and with the text that ours sends,
    which psycopg passes on three times as fast.
    """
    jobs = 100_000 if plan.full else 20_000
    with _busy(laboratory) as (place, workers), place.database() as db:
        workers.crew.end()
        db.execute("CREATE TABLE plain_batch (LIKE pipeline.jobs INCLUDING ALL)")

        def ours() -> Measured:
            db.execute("TRUNCATE pipeline.jobs, pipeline.outbox CASCADE")
            return _timed(jobs, lambda: _submit(workers))

        def plain(form: Callable[[Iterable[str]], object]) -> Measured:
            db.execute("TRUNCATE plain_batch")
            return _timed(jobs, lambda: db.execute(BATCH, (form(_bodies()),)))

        sides: dict[str, Side] = {
            "plain_insert": partial(plain, list),
            "pipeline": ours,
            "plain_insert_as_text": partial(plain, as_array),
        }
        rounds = Rounds(sides, plan.rounds)
    ratio = rounds.ratio("pipeline", "plain_insert")
    as_text = rounds.ratio("pipeline", "plain_insert_as_text")
    print(f"  submit_many against a batched INSERT: {ratio}; if that is sent as ours is: {as_text}")
    return {
        "submit_jobs_per_s": {side: round(rounds.median(side)) for side in sides},
        "submit_ratio": round(ratio.median, 2),
        "submit_ratio_as_text": round(as_text.median, 2),
    }


@contextmanager
def _busy(laboratory: lab.Laboratory) -> Iterator[tuple[lab.Place, Pipeline]]:
    """Workers whose threads are all busy: the rest of them is as users have it, and takes no processor time."""
    with laboratory.place("busy", PIPELINE_WORKFLOWS="bench.workflows.busy") as place:
        workers = Pipeline(place, ["busy"], 0, lab.PROCESSES)
        try:
            workers.start()
            workers.submit(lab.PROCESSES * lab.THREADS)
            workers.crew.thaw()
            yield place, workers
        finally:
            workers.end()


def _submit(workers: Pipeline) -> None:
    with workers.engine.begin() as connection:
        submit_many(connection, "busy", [lab.BODY] * GROUP)


def _bodies() -> Iterable[str]:
    return (orjson.dumps(lab.BODY).decode() for _ in range(GROUP))


def _timed(jobs: int, group: Callable[[], object]) -> Measured:
    started = monotonic()
    for _ in range(jobs // GROUP):
        group()
    return {RATE: jobs / (monotonic() - started)}
