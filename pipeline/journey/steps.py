"""What steps of an attempt returned: kept under its fence, and read by later attempts at the phase."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pipeline.journey.checkpoint import FIRST, LONGEST, repeat
from pipeline.observe import failpoints
from pipeline.store.gateway import settlement
from pipeline.store.group_commit import Keep

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pipeline.journey.attempt import Attempt
    from pipeline.store.gateway.settlement import Kept
    from pipeline.store.group_commit import Committer

Keeper = Callable[["Attempt", str, str], Awaitable["Kept"]]


async def keep(keeper: Keeper, attempt: Attempt, name: str, value: str) -> bool:
    """False when the attempt no longer holds its job. While somebody has the row locked it is asked again."""
    if failpoints.armed:
        failpoints.reach("step.ended", failpoints.step_place(attempt.spec.queue, name))
    pause = FIRST
    while (verdict := await keeper(attempt, name, value)) == "locked":
        await attempt.place.pause(attempt, pause)
        pause = min(2 * pause, LONGEST)
    return verdict == "won"


async def keep_in_group(committer: Committer, attempt: Attempt, name: str, value: str) -> Kept:
    """In the statement and commit of other jobs. It is repeated until PostgreSQL answers, unless the attempt ends."""
    wish = Keep(attempt, name, value, attempt.place.signal())
    committer.keep(wish)
    await attempt.place.wait(wish.signal)
    return wish.verdict()


async def keep_alone(attempt: Attempt, name: str, value: str) -> Kept:
    """In a transaction of its own: a child process has nobody to share with."""

    def write(connection: Connection) -> Kept:
        return settlement.keep_step(connection, attempt.job_id, attempt.fence, name, value)

    return repeat(attempt, write, twice_is_harmless=True)


async def kept(attempt: Attempt) -> dict[str, str]:
    """The JSON of what earlier attempts at the phase kept, by name. Not asked for when there was none."""
    if attempt.first:
        return {}

    def read(connection: Connection) -> dict[str, str]:
        return settlement.kept_steps(connection, attempt.job_id, attempt.spec.name)

    def ask() -> dict[str, str]:
        return repeat(attempt, read, twice_is_harmless=True)

    return await attempt.place.call(ask)
