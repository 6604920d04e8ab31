"""Growth: more workflows, a held snapshot, a full table, a long history, more processes; a worker's memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic, sleep

from bench import lab
from bench.paired import Figures, Measured, Plan, Rounds, merge, real
from bench.systems import NOW, Pipeline, pipeline
from bench.workflows.many import names

FINISHED = """
    INSERT INTO pipeline.jobs (workflow, trace_id, span_id, body, phase, status, max_attempts, completed_at)
    SELECT 'chain', repeat('0', 31) || '1', repeat('0', 15) || '1', '{"text": "old"}', 'three', 'succeeded', 3, now()
    FROM generate_series(1, %s) /* bench */"""
HISTORY = """
    INSERT INTO pipeline.attempts (job_id, fence, attempt, ready_at, started_at, finished_at, phase, outcome, worker)
    SELECT j.id, f, 1, j.created_at, j.created_at, j.created_at, 'three', 'succeeded', 'old'
    FROM pipeline.jobs j, generate_series(1, 3) f WHERE j.body ->> 'text' = 'old' /* bench */"""
PENDING = "SELECT count(*) FROM pipeline.outbox /* bench */"
FEW, MANY = 10_000, 1_000_000


def workflows(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """The same jobs spread over 300 (and 100) workflows of three phases, against one workflow; threads a process."""
    counts = (300, 100, 1) if plan.full else (300, 1)
    with ExitStack() as stack:
        sides = {
            str(n): stack.enter_context(
                pipeline(
                    laboratory,
                    "many",
                    *names(n),
                    name=f"workflows_{n}",
                    seconds=plan.seconds,
                    BENCH_WORKFLOWS=str(n),
                )
            ).turn
            for n in counts
        }
        rounds = Rounds(sides, plan.rounds)
    threads = {str(n): round(rounds.median(str(n), "threads")) for n in counts}
    print(f"  threads a process: {threads}")
    return merge(
        {"workflows_jobs_per_s": {str(n): round(rounds.median(str(n))) for n in counts}, "workflows_threads": threads},
        real(**{f"workflows_{n}_vs_1": rounds.ratio(str(n), "1") for n in counts[:-1]}),
        {"real": {"threads_300": threads["300"]}},
    )


def snapshot(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Under a snapshot that was held during 100,000 jobs before (20,000 or 5,000 if not a full run), against none."""
    with ExitStack() as stack:
        held, free = (
            stack.enter_context(pipeline(laboratory, "defaults", "chain", name=name, seconds=plan.seconds))
            for name in ("held", "free")
        )
        report = stack.enter_context(held.place.database())
        report.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        report.execute("SELECT count(*) FROM pipeline.jobs /* bench */")
        _work_off(plan.history, held, free)
        rounds = Rounds({"held": held.turn, "free": free.turn}, plan.rounds)
        report.execute("ROLLBACK")
    return merge(
        {
            "snapshot_jobs_per_s": {side: round(rounds.median(side)) for side in ("held", "free")},
            "snapshot_jobs": plan.history,
        },
        real(snapshot_vs_none=rounds.ratio("held", "free")),
    )


def pending(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """With a million pending jobs, and after a million finished ones, against ten thousand pending."""
    loads: dict[str, Callable[[Pipeline], None]] = {"few": _refill, "many": _fill, "finished": _finish}
    with ExitStack() as stack:
        systems = {
            name: stack.enter_context(pipeline(laboratory, "defaults", "chain", name=name, seconds=plan.seconds))
            for name in loads
        }
        # Loading takes minutes, and nobody can be frozen for so long: RabbitMQ would take them for dead.
        for name, load in loads.items():
            systems[name].crew.end()
            load(systems[name])
            systems[name].db.execute("VACUUM ANALYZE")
        for system in systems.values():
            system.start()
            system.window(plan.seconds)

        def refilled(system: Pipeline) -> Measured:
            _refill(system)
            return system.window(plan.seconds)

        sides = {
            "many": lambda: systems["many"].window(plan.seconds),
            "few": lambda: refilled(systems["few"]),
            "finished": lambda: refilled(systems["finished"]),
        }
        rounds = Rounds(sides, plan.rounds)
    ratio = rounds.ratio("many", "few")
    print(f"  {MANY:,} pending against {FEW:,}: {ratio}")
    return {
        "pending_jobs_per_s": {str(FEW): round(rounds.median("few")), str(MANY): round(rounds.median("many"))},
        "pending_ratio": round(ratio.median, 2),
        "after_finished_jobs_per_s": {str(MANY): round(rounds.median("finished"))},
    }


def processes(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """One, two and four worker processes."""
    with ExitStack() as stack:
        sides = {
            str(n): stack.enter_context(
                pipeline(laboratory, "defaults", "chain", name=f"processes_{n}", seconds=plan.seconds, processes=n)
            ).turn
            for n in (1, 2, 4)
        }
        rounds = Rounds(sides, plan.rounds)
    return {"processes_jobs_per_s": {n: round(rounds.median(n)) for n in sides}}


def memory(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """The workers' memory when all their parts have been at work, and 100,000 jobs later.

    A fifth of the jobs go before, and a minute: sweeps and reports come by then, and load what they need.
    """
    jobs = 100_000
    with pipeline(laboratory, "defaults", "chain", name="memory", seconds=plan.seconds) as system:
        started = monotonic()
        _work_off(jobs // 5, system)
        system.crew.thaw()
        sleep(max(0.0, 65 - (monotonic() - started)))
        early = _resident(system)
        _work_off(jobs, system)
        late = _resident(system)
    growth = round(100 * (late / early - 1), 2)
    print(f"  {early / 1e6:.1f} MB, then {late / 1e6:.1f} MB: {growth} %")
    return {
        "memory_mb": {"early": round(early / 1e6, 1), "late": round(late / 1e6, 1)},
        "memory_growth_percent": growth,
        "memory_jobs": jobs,
    }


def _work_off(jobs: int, *systems: Pipeline) -> None:
    """All of them at the same time, so that nobody is frozen for long."""
    begun = [lab.one(system.db, NOW) for system in systems]
    for system in systems:
        system.crew.thaw()
        system.submit(jobs)
    for system, since in zip(systems, begun, strict=True):
        system.wait_for(jobs, since)
    for system in systems:
        system.crew.freeze()


def _refill(system: Pipeline) -> None:
    system.submit(FEW - int(lab.one(system.db, PENDING)))


def _fill(system: Pipeline) -> None:
    system.submit(MANY)


def _finish(system: Pipeline) -> None:
    system.db.execute(FINISHED, (MANY,))
    system.db.execute(HISTORY)


def _resident(system: Pipeline) -> int:
    return sum(int(process.memory_info().rss) for process in system.family() if process.num_threads() >= lab.THREADS)
