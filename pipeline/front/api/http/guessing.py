"""Guessing tokens: whoever was wrong too often must wait, whatever is sent next."""

from __future__ import annotations

from collections import OrderedDict, deque
from math import ceil
from threading import Lock
from time import monotonic

from pipeline.front.api.http.problem import Problem

TRIES, SECONDS = 100, 60.0
REMEMBERED = 10_000


class Guessing:
    """Counts wrong tokens by the address they come from. Bounded: the addresses longest unheard of are forgotten."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def check(self, address: str) -> None:
        """429 if this address has used up its tries; the token is not even looked at."""
        with self._lock:
            wrong = self._wrong.get(address)
            left = wrong[0] + SECONDS - monotonic() if wrong and len(wrong) == TRIES else 0.0
        if left > 0:
            raise Problem(
                429, "Too many wrong tokens", f"try again in {ceil(left)} s", headers={"Retry-After": str(ceil(left))}
            )

    def was_wrong(self, address: str) -> None:
        with self._lock:
            self._wrong.setdefault(address, deque(maxlen=TRIES)).append(monotonic())
            self._wrong.move_to_end(address)
            if len(self._wrong) > REMEMBERED:
                self._wrong.popitem(last=False)
