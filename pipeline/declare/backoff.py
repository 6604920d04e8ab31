"""How long a job waits before its next try. Pure: the random number is a parameter."""

from __future__ import annotations

from dataclasses import dataclass

DAY = 24 * 60 * 60.0


@dataclass(frozen=True)
class Backoff:
    """Delays in seconds: a fixed ``schedule`` first, then ``base * 2 ** n``, never above ``cap``.

    >>> Backoff(schedule=(1, 10), base=60).delay(failures=3)
    60.0

    The last entry of a schedule repeats when ``base`` is not given. ``jitter`` is the share of a
    delay that may be added on top, so that jobs which failed together do not come back together.
    """

    schedule: tuple[float, ...] = (5.0, 30.0, 120.0)
    base: float | None = None
    cap: float = DAY
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not self.schedule and self.base is None:
            raise ValueError("a Backoff needs a schedule, a base, or both")
        if any(not delay >= 0 for delay in self.schedule) or (self.base is not None and not self.base > 0):
            raise ValueError("delays must not be negative and a base must be above zero")
        if not self.cap >= 0:
            raise ValueError(f"a cap is not negative, not {self.cap}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is a share between 0 and 1, not {self.jitter}")

    def delay(self, failures: int, chance: float = 0.0) -> float:
        """Seconds to wait after ``failures`` (1, 2, …) executions failed; ``chance`` in [0, 1)."""
        plain = min(self._plain(max(failures, 1) - 1), self.cap)
        return min(plain * (1 + self.jitter * chance), self.cap)

    def _plain(self, index: int) -> float:
        if index < len(self.schedule):
            return self.schedule[index]
        if self.base is None:
            return self.schedule[-1]
        exponent = index - len(self.schedule)
        return self.cap if exponent > 64 else self.base * 2.0**exponent


def exponential(base: float, *, cap: float = DAY, jitter: float = 0.1) -> Backoff:
    """``base``, ``2 * base``, ``4 * base`` … seconds, up to ``cap``.

    >>> [exponential(10, cap=60).delay(failures) for failures in (1, 2, 3, 4)]
    [10.0, 20.0, 40.0, 60.0]
    """
    return Backoff(schedule=(), base=base, cap=cap, jitter=jitter)
