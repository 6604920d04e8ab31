"""Two jobs and a clock for made-up histories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

JOB, OTHER = uuid4(), uuid4()
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)
