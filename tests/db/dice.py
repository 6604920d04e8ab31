"""Chance: which step comes next, and who takes it on what.

One rule rolls for all of it: Hypothesis would switch half of the rules off in each example and repeat itself within
it, and a life without claims says little. The usual steps come up more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

ENDS = ["retry", "crash", "snooze", "release", "fail"]
STEPS = {
    "run_what_waits": 4,
    "complete": 4,
    "end": 3,
    "take_over": 3,
    "claim": 2,
    "replay": 2,
    "cancel": 1,
    "undeliverable": 1,
    "expire": 1,
    "admit": 1,
    "unsend": 2,
    "timed_waits_end": 1,
    "reclaim": 1,
    "kill_worker": 1,
    "heartbeat": 1,
    "submit": 1,
    "discard": 1,
    "open_batch": 1,
    "seal_batch": 1,
}
CHOICES = [name for name, weight in STEPS.items() for _ in range(weight)]


@dataclass(frozen=True)
class Dice:
    """What chance says about one step. ``off`` spoils a fence or a send number; zero leaves it right."""

    which: int
    who: int
    off: int
    flag: bool
    how: str
    times: int


def roll(random: Random) -> tuple[str, Dice]:
    """A step and what chance says about it."""
    return random.choice(CHOICES), Dice(
        which=random.randrange(128),
        who=random.randrange(128),
        off=random.choice([0, 0, 0, 0, 0, 0, -1, 1]),
        flag=random.random() < 0.5,
        how=random.choice(ENDS),
        times=random.randint(1, 3),
    )
