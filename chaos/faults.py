"""All faults by name, and the plans made of them."""

from __future__ import annotations

import itertools
import random

from chaos import (
    faults_cluster,
    faults_disk,
    faults_front,
    faults_network,
    faults_postgres,
    faults_rabbitmq,
    faults_timeout,
    faults_workers,
)
from chaos.fault import CATALOGUE, Fault

# Importing them fills the catalogue; this is the order of the table.
MODULES = (faults_workers, faults_front, faults_rabbitmq, faults_timeout, faults_postgres, faults_network, faults_disk,
           faults_cluster)  # fmt: skip
WORST = (
    "worker SIGKILL", "worker SIGSTOP past its lease, SIGCONT", "RabbitMQ SIGKILL, restart", "RabbitMQ data wiped",
    "queue purge", "connections closed by an operator", "PostgreSQL immediate restart", "all backends terminated",
)  # fmt: skip
PAIRS = 20
Plan = list[tuple[Fault, ...]]


def quick_plan() -> Plan:
    """Eight of the worst, once."""
    return [(CATALOGUE[name],) for name in WORST]


def full_plan(chance: random.Random) -> Plan:
    """Every fault twice, then random pairs at the same time."""
    order = [module.__name__ for module in MODULES]
    every = sorted(CATALOGUE.values(), key=lambda fault: order.index(fault.act.__module__))
    alone: Plan = [(fault,) for fault in every]
    possible = [fault for fault in every if fault.impossible() is None and not fault.elsewhere]
    pairs: Plan = list(itertools.combinations(possible, 2))
    return alone + alone + chance.sample(pairs, PAIRS)


def plan_of(names: list[str]) -> Plan:
    """These alone; a name may be a part, and a pair is written with `` + ``."""
    return [tuple(_find(part.strip()) for part in name.split(" + ")) for name in names]


def _find(part: str) -> Fault:
    found = [fault for name, fault in CATALOGUE.items() if part in name]
    exact = [fault for fault in found if fault.name == part] or found
    if len(exact) != 1:
        raise ValueError(f"{part!r} names {len(exact)} faults; there are: {', '.join(CATALOGUE)}")
    return exact[0]
