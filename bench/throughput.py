"""Throughput: jobs of three phases, queued beforehand and then worked off, as users write them."""

from __future__ import annotations

from contextlib import ExitStack

from bench import lab
from bench.paired import Figures, Plan, Rounds, against, merge, real
from bench.systems import dramatiq, pipeline

COSTS = ("statements", "wal_bytes", "messages")
OURS = "pipeline"


def defaults(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Default options, against bare Dramatiq's chain without and with confirms."""
    with ExitStack() as stack:
        ours = stack.enter_context(pipeline(laboratory, "defaults", "chain", seconds=plan.seconds))
        peers = ("dramatiq", "dramatiq_confirmed")
        bare, confirmed = (stack.enter_context(dramatiq(laboratory, peer, seconds=plan.seconds)) for peer in peers)
        sides = {"dramatiq": bare.turn, OURS: ours.turn, "dramatiq_confirmed": confirmed.turn}
        rounds = Rounds(sides, plan.rounds)
    ratios = {peer: rounds.ratio(OURS, peer) for peer in peers}
    return merge(
        rounds.rates(),
        against(ratios),
        real(
            defaults_vs_dramatiq=ratios["dramatiq"],
            defaults_vs_dramatiq_confirmed=ratios["dramatiq_confirmed"],
        ),
        {"cost_per_phase": _costs(rounds, OURS)},
    )


def pooled(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """A pool of ten, against no pool."""
    with (
        pipeline(laboratory, "pooled", seconds=plan.seconds) as ours,
        pipeline(laboratory, "unpooled", seconds=plan.seconds) as free,
    ):
        rounds = Rounds({"pooled": ours.turn, "unpooled": free.turn}, plan.rounds)
    return merge(
        rounds.rates(),
        real(pooled_vs_unpooled=rounds.ratio("pooled", "unpooled")),
        {"cost_per_pooled_phase": _costs(rounds, "pooled")},
    )


def writes(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """A row written in each phase, against Dramatiq + INSERT and naive claim, INSERT, complete."""
    with (
        dramatiq(laboratory, "dramatiq_insert", seconds=plan.seconds) as bare,
        pipeline(laboratory, "writes", seconds=plan.seconds) as ours,
        dramatiq(laboratory, "naive_insert", seconds=plan.seconds) as naive,
    ):
        sides = {"dramatiq_insert": bare.turn, "writes": ours.turn, "naive_insert": naive.turn}
        rounds = Rounds(sides, plan.rounds)
    return merge(
        rounds.rates(),
        real(
            writes_vs_dramatiq_insert=rounds.ratio("writes", "dramatiq_insert"),
            writes_vs_naive_insert=rounds.ratio("writes", "naive_insert"),
        ),
        {"cost_per_writing_phase": _costs(rounds, "writes")},
    )


def results(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Results of 20 KB a phase, against bare Dramatiq whose messages carry them."""
    with (
        pipeline(laboratory, "results", seconds=plan.seconds) as ours,
        dramatiq(laboratory, "dramatiq_results", seconds=plan.seconds) as bare,
    ):
        rounds = Rounds({"results": ours.turn, "dramatiq_results": bare.turn}, plan.rounds)
    return merge(rounds.rates(), real(results_vs_dramatiq=rounds.ratio("results", "dramatiq_results")))


def typed(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """A model as the body and typed results, against dictionaries."""
    with (
        pipeline(laboratory, "typed", "typed", seconds=plan.seconds) as ours,
        pipeline(laboratory, "typed", "untyped", seconds=plan.seconds, name="untyped") as free,
    ):
        rounds = Rounds({"typed": ours.turn, "untyped": free.turn}, plan.rounds)
    return merge(rounds.rates(), real(typed_vs_untyped=rounds.ratio("typed", "untyped")))


def keyed(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Jobs that take turns by a key, against jobs without one."""
    with (
        pipeline(laboratory, "keyed", "keyed", seconds=plan.seconds) as ours,
        pipeline(laboratory, "keyed", "unkeyed", seconds=plan.seconds, name="unkeyed") as free,
    ):
        rounds = Rounds({"keyed": ours.turn, "unkeyed": free.turn}, plan.rounds)
    return merge(rounds.rates(), real(keyed_vs_unkeyed=rounds.ratio("keyed", "unkeyed")))


def _costs(rounds: Rounds, side: str) -> Figures:
    return {cost: round(rounds.median(side, cost), 3) for cost in COSTS}
