"""Answers that many ask for and that cost something: computed once, kept for a moment."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """``get`` computes at most once in ``seconds``, however many threads ask. An error is not remembered."""

    def __init__(self, compute: Callable[[], Value], seconds: float) -> None:
        self._compute = compute
        self._seconds = seconds
        self._lock = Lock()
        self._kept: tuple[float, Value] | None = None

    def get(self) -> Value:
        """The value, not older than ``seconds``."""
        with self._lock:
            if self._kept is None or monotonic() - self._kept[0] >= self._seconds:
                value = self._compute()
                self._kept = (monotonic(), value)
            return self._kept[1]
