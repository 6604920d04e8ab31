"""The time of a test: real time, moved on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """It goes on by itself as well: what was due five minutes from now, is due after ``advance`` by five minutes."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def advance(self, by: timedelta) -> None:
        self._ahead += forward(by)

    def advance_to(self, moment: datetime) -> None:
        """Nothing, if that has passed."""
        self._ahead += max(moment - self.now(), timedelta(0))


def forward(by: timedelta) -> timedelta:
    """ValueError if that would be backwards."""
    if by <= timedelta(0):
        raise ValueError(f"time moves on only: {by}")
    return by
