"""An attempt as a worker holds it, without a worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from uuid import UUID, uuid4

from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Attempt

if TYPE_CHECKING:
    from pipeline.broker.inbound import Delivery


def attempt(spec: PhaseSpec, job_id: UUID | None = None, fence: int = 1) -> Attempt:
    return Attempt(
        spec=spec,
        job_id=job_id or uuid4(),
        fence=fence,
        attempts=0,
        max_attempts=spec.max_attempts,
        crashes=0,
        isolated=spec.isolated,
        priority=0,
        body="{}",
        results="{}",
        trace_id="0" * 32,
        span_id="0" * 16,
        delivery=cast("Delivery", SimpleNamespace(abandoned=False)),
    )
