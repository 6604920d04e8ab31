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

    ``jobs``: those that the fault submitted itself; they belong to the wave like all others.
    """

    hits: int = 0
    unit: str = ""
    kills: list[Kill] = field(default_factory=list)
    consumers_back: list[float] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    jobs: list[UUID] = field(default_factory=list)


@dataclass
class Scene:
    """What a fault may use. Its dice are its own, so that a run can be repeated."""

    stage: Stage
    observer: Observer
    chance: random.Random
    quick: bool

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

    ``impossible`` says why it cannot be made on this machine, or nothing. ``elsewhere`` gives it servers and workers of
    its own; such a fault has no pairs.
    """

    name: str
    act: Act
    explains: frozenset[str] = frozenset()
    load: str = "normal"
    impossible: Callable[[], str | None] = lambda: None
    elsewhere: Elsewhere | None = None


CATALOGUE: dict[str, Fault] = {}


def fault(name: str, *, explains: Iterable[str] = (), load: str = "normal",
          impossible: Callable[[], str | None] = lambda: None,
          elsewhere: Elsewhere | None = None) -> Callable[[Act], Act]:  # fmt: skip
    """Enter the function into the catalogue."""

    def enter(act: Act) -> Act:
        CATALOGUE[name] = Fault(name, act, frozenset(explains), load, impossible, elsewhere)
        return act

    return enter


def now() -> datetime:
    return datetime.now(UTC)
