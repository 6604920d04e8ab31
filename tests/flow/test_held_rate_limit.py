"""A rate limit whose row an application holds, in a transaction that stays open (F3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from uuid import UUID

import pytest

from pipeline import submit
from pipeline.declare.errors import Snooze
from pipeline.journey.rate_limits import pause_rate_limit, take_permit
from tests.place import Place


def ask(job: UUID) -> tuple[str, float]:
    began = monotonic()
    with pytest.raises(Snooze) as wait:
        take_permit(job, "api", 1)
    return wait.value.reason, monotonic() - began


def test_its_callers_wait_in_postgresql_and_hold_no_thread(place: Place) -> None:
    """The first learns it after a second, the other threads of its process at once; then everything works as before."""
    job = submit(None, "single", {})
    place.db.execute("SELECT pipeline.set_rate_limit('api', 5)")
    with place.db.transaction():
        place.db.execute("UPDATE pipeline.rate_limits SET burst = burst WHERE name = 'api'")
        began = monotonic()
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, [job] * 8))
        assert {reason for reason, _ in answers} == {"rate_limit"}
        assert monotonic() - began < 3, answers
        pause_rate_limit("api", 60, "retry_after")
        assert monotonic() - began < 5
    place.until(lambda: _may_call(job), 5, "its permit")


def _may_call(job: UUID) -> bool:
    try:
        take_permit(job, "api", 1)
    except Snooze:
        return False
    return True
