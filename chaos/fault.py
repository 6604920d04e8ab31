"""What a fault is: something that is done to a running system, and what it excuses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from chaos.observer import Observer
from chaos.reconcile import Absence
from chaos.stage import Stage


@dataclass(frozen=True)
class Kill:
    """A worker that was killed, when, and those that were there to take over."""

    worker: str
    at: datetime
    others: frozenset[str]


@dataclass
class Hits:
    """What the fault did. ``complaints``: what the system should have done meanwhile, and did not.

    ``jobs``: those that the fault submitted itself; they belong to the wave like all others. ``cancelled``: those of
    them that must end so. ``absences``: workers that were frozen or cut off; kills have a list of their own.
    """

    hits: int = 0
    unit: str = ""
    kills: list[Kill] = field(default_factory=list)
    consumers_back: list[float] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    jobs: list[UUID] = field(default_factory=list)
    cancelled: list[UUID] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)

    def absent(self) -> list[Absence]:
        """Every worker that lost its jobs by this fault's doing."""
        return [*self.absences, *(Absence("killed", kill.worker, kill.at) for kill in self.kills)]


@dataclass
class Scene:
    """What a fault may use. Its dice are its own, so that a run can be repeated.

    ``alone``: no other fault acts, so that the pace of the work can be judged.
    """

    stage: Stage
    observer: Observer
    chance: random.Random
    quick: bool
    alone: bool = True

    def pause(self, least: float, most: float) -> None:
        """A random moment: this is what the dice are for, not a wait for something."""
        time.sleep(self.chance.uniform(least, most))

    def times(self, quick: int, full: int) -> int:
        return quick if self.quick else full


Act = Callable[[Scene], Hits]
Elsewhere = Callable[[Stage], AbstractContextManager[Stage]]


@dataclass(frozen=True)
class Fault:
    """``explains``: how attempts may end under it. ``load``: calm leaves threads free, deep fills the queues.

    A crash or a stale lease is never explained by a name: it needs the absence of that very worker (see reconcile).
    ``impossible`` says why it cannot be made on this machine, or nothing. ``elsewhere`` gives it servers and workers of
    its own; such a fault has no pairs. ``proxied``: the workers reach the servers through proxies. ``management``: it
    is about the management address, so that the workers have one.
    """

    name: str
    act: Act
    explains: frozenset[str] = frozenset()
    load: str = "normal"
    impossible: Callable[[], str | None] = lambda: None
    elsewhere: Elsewhere | None = None
    proxied: bool = False
    management: bool = False


CATALOGUE: dict[str, Fault] = {}


def fault(
    name: str,
    *,
    explains: Iterable[str] = (),
    load: str = "normal",
    impossible: Callable[[], str | None] = lambda: None,
    elsewhere: Elsewhere | None = None,
    proxied: bool = False,
    management: bool = False,
) -> Callable[[Act], Act]:
    """Enter the function into the catalogue."""

    def enter(act: Act) -> Act:
        CATALOGUE[name] = Fault(name, act, frozenset(explains), load, impossible, elsewhere, proxied, management)
        return act

    return enter


def now() -> datetime:
    return datetime.now(UTC)
