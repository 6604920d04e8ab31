"""How much: seconds' worth in every test run, the full count with script/fuzz. The dice are seeded: a find comes again."""

from __future__ import annotations

import os
import random
from collections import Counter

FULL = os.environ.get("FUZZ") == "full"
SEED = int(os.environ.get("FUZZ_SEED", "1"))


def times(quick: int, full: int) -> int:
    return full if FULL else quick


def dice(name: str) -> random.Random:
    """Of each test its own, so that it does not matter which tests run."""
    return random.Random(f"{SEED} {name}")


def tell(what: str, counts: Counter[str]) -> None:
    """One line with what was tried and what came of it."""
    parts = ", ".join(f"{n:,} {name}" for name, n in counts.most_common())
    print(f"\nfuzz: {counts.total():,} {what}: {parts}")
