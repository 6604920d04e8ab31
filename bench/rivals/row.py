"""The rivals: other systems with the same chain of three empty phases, each as its own documentation sets it up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import lab
from bench.paired import Figures, Plan, Ratio, Rounds, against, merge
from bench.rivals.install import NotInstalled, environment
from bench.systems import Peer, dramatiq, pipeline, warm

OURS = "pipeline"
DRAMATIQ = ("dramatiq_one_actor", "naive")


@dataclass(frozen=True)
class Rival:
    """``workers``: the arguments of its worker processes, the first of them a program of its environment."""

    workers: list[list[str]]
    at_least: tuple[int, int] = (3, 11)
    quick: bool = True


def _two_of(name: str) -> list[list[str]]:
    return [["python", "-m", f"bench.rivals.{name}_chain"]] * 2


RIVALS = {
    "celery": Rival([["celery", "-A", "bench.rivals.celery_chain", "worker", "--concurrency", "4", "-l", "ERROR"]]),
    "taskiq": Rival([["taskiq", "worker", "bench.rivals.taskiq_chain:broker", "--log-level", "ERROR"]], quick=False),
    "awa": Rival(_two_of("awa")),
    "oban": Rival(_two_of("oban"), at_least=(3, 12)),
    "pgqueuer": Rival(_two_of("pgqueuer"), quick=False),
    "procrastinate": Rival(
        [["procrastinate", "--app=bench.rivals.procrastinate_chain.app", "worker", "--concurrency", "8"]] * 2
    ),
    "dbos": Rival(_two_of("dbos")),
}


def peers(laboratory: lab.Laboratory, plan: Plan) -> Figures:
    """Default options, against other systems, and against three functions called in one Dramatiq actor."""
    names = [name for name, rival in RIVALS.items() if (rival.quick or not plan.quick) and _installed(name)]
    ratios: dict[str, Ratio] = {}
    rates: list[Figures] = []
    with pipeline(laboratory, "defaults", "chain", seconds=plan.seconds) as ours:
        for name in (*DRAMATIQ, *names):
            # Awake while the other one starts: who is frozen for a minute loses its connections.
            ours.crew.thaw()
            with _peer(laboratory, name, plan.seconds) as peer:
                ours.crew.freeze()
                rounds = Rounds({OURS: ours.turn, name: peer.turn}, plan.rounds)
            ratios[name] = rounds.ratio(OURS, name)
            rates.append(rounds.rates(name))
    return merge(*rates, against(ratios))


def _installed(name: str) -> bool:
    try:
        environment(name, RIVALS[name].at_least)
    except NotInstalled as reason:
        print(f"  {name} is left out: {reason}", flush=True)
        return False
    return True


@contextmanager
def _peer(laboratory: lab.Laboratory, name: str, seconds: float) -> Iterator[Peer]:
    if name in DRAMATIQ:
        with dramatiq(laboratory, name, seconds=seconds) as peer:
            yield peer
        return
    programs = environment(name, RIVALS[name].at_least)
    filler = [str(programs / "python"), "-m", "bench.rivals.filler", f"bench.rivals.{name}_chain"]
    workers = [[str(programs / program), *arguments] for program, *arguments in RIVALS[name].workers]
    with laboratory.place(name) as place, warm(Peer(place, filler, *workers, seconds=seconds)) as peer:
        yield peer
