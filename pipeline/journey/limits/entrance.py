"""What an attempt passes before its work begins: the permit of its phase's limit, and its breaker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pipeline.declare.errors import Permanent
from pipeline.journey.rate_limits import take_permit

if TYPE_CHECKING:
    from pipeline.journey.attempt import Attempt


@asynccontextmanager
async def entered(attempt: Attempt) -> AsyncIterator[None]:
    """The work of a phase that shares something outside goes inside. Raises Snooze before that if it must wait."""
    await _permitted(attempt)
    if attempt.spec.breaker is None or not attempt.rate_limit:
        yield
        return
    # Which loads pybreaker: for those that need it.
    from pipeline.journey.limits.breaker import CallGuard

    guard = CallGuard(attempt.spec.breaker, attempt.rate_limit, attempt)
    if attempt.spec.kind == "async" and not attempt.isolated:
        async with guard:
            yield
    else:
        with guard:
            yield


async def _permitted(attempt: Attempt) -> None:
    spec = attempt.spec
    if attempt.rate_limit == "":
        raise Permanent(f"the body does not fill the limit {spec.rate_limit!r} of phase {spec.queue}")
    if spec.limit is not None and spec.limit.calls and attempt.rate_limit:
        wait = await attempt.place.call(take_permit, attempt.job_id, attempt.rate_limit, spec.limit.calls)
        if wait > 0:
            await attempt.place.pause(attempt, wait)
