"""All faults by name, and the plans made of them."""

from __future__ import annotations

import itertools
import random

from chaos import (
    faults_application,
    faults_cluster,
    faults_connections,
    faults_disk,
    faults_drop,
    faults_failover,
    faults_front,
    faults_limits,
    faults_neighbours,
    faults_network,
    faults_postgres,
    faults_postgres_limits,
    faults_rabbitmq,
    faults_stuck,
    faults_timeout,
    faults_workers,
)
from chaos.fault import CATALOGUE, Fault

# Importing them fills the catalogue; this is the order of the table.
MODULES = (
    faults_workers,
    faults_stuck,
    faults_limits,
    faults_front,
    faults_rabbitmq,
    faults_timeout,
    faults_postgres,
    faults_postgres_limits,
    faults_application,
    faults_connections,
    faults_network,
    faults_drop,
    faults_disk,
    faults_neighbours,
    faults_cluster,
    faults_failover,
)
WORST = (
    "worker SIGKILL",
    "RabbitMQ SIGKILL, restart",
    "RabbitMQ data wiped",
    "phases stuck past their time limit",
    "queue purge",
    "one PostgreSQL connection of each kind lost alone",
    "PostgreSQL immediate restart",
    "application's transaction holds a cancel, a batch and rows",
    "all backends terminated",
)
# Waves with and without the management address alternate: what loses messages is done both ways.
BOTH_WAYS = ("RabbitMQ data wiped", "queue purge", "RabbitMQ SIGKILL, restart")
PAIRS = 20
Plan = list[tuple[Fault, ...]]


def quick_plan() -> Plan:
    """Nine of the worst, once."""
    return [(CATALOGUE[name],) for name in WORST]


def full_plan(chance: random.Random) -> Plan:
    """Every fault alone, those that lose messages both with and without the management address, then random pairs."""
    order = [module.__name__ for module in MODULES]
    every = sorted(CATALOGUE.values(), key=lambda fault: order.index(fault.act.__module__))
    plan: Plan = [(fault,) for fault in every]
    possible = [fault for fault in every if fault.impossible() is None and not fault.elsewhere]
    pairs: Plan = chance.sample(list(itertools.combinations(possible, 2)), PAIRS)
    for fault in (CATALOGUE[name] for name in BOTH_WAYS):
        # The other way round than the first time: where it must not stand, a pair goes first.
        if with_management(plan.index((fault,)) + 1) is with_management(len(plan) + 1):
            plan.append(pairs.pop())
        plan.append((fault,))
    return plan + pairs


def with_management(number: int) -> bool:
    """Whether the workers of this wave (1, 2, …) know the management address: every second one's do."""
    return number % 2 == 1


def plan_of(names: list[str]) -> Plan:
    """These alone; a name may be a part, and a pair is written with `` + ``."""
    return [tuple(_find(part.strip()) for part in name.split(" + ")) for name in names]


def _find(part: str) -> Fault:
    found = [fault for name, fault in CATALOGUE.items() if part in name]
    exact = [fault for fault in found if fault.name == part] or found
    if len(exact) != 1:
        raise ValueError(f"{part!r} names {len(exact)} faults; there are: {', '.join(CATALOGUE)}")
    return exact[0]
