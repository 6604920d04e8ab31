"""The ways to run a phase: empty phases in threads, on the event loop, and isolated in warm child processes."""

from __future__ import annotations

from contextlib import ExitStack

from bench import lab
from bench.paired import Figures, Plan, Rounds, merge, real
from bench.systems import pipeline

# Each is a workflow of bench.workflows.execution, and has workers of its own.
THREADS = "threads"
OTHERS = ("coroutines", "isolated")


def execution(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Three empty phases a job: in threads, and in each of the other ways of the same run."""
    with ExitStack() as stack:
        sides = {
            _side(way): stack.enter_context(pipeline(laboratory, "execution", way, seconds=plan.seconds, name=way)).turn
            for way in (THREADS, *OTHERS)
        }
        rounds = Rounds(sides, plan.rounds)
    ratios = {f"{way}_vs_{THREADS}": rounds.ratio(_side(way), _side(THREADS)) for way in OTHERS}
    medians = {name: round(ratio.median, 2) for name, ratio in ratios.items()}
    return merge(rounds.rates(), real(**ratios), {"execution": medians})


def _side(way: str) -> str:
    return f"empty_{way}"
