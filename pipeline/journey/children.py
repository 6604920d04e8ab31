"""Submitting the children that a phase returned, in the transaction that ends the phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.store.gateway import settlement

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pipeline.declare.next import Children
    from pipeline.journey.attempt import Attempt

# So many in a statement.
CHUNK = 5000
# More than these are not submitted in a transaction that other jobs share.
SHARED_CHILDREN = 100


def submit_children(attempt: Attempt, children: Children[Any], connection: Connection) -> None:
    """They exist if and only if the job waits for them."""
    # None at all are a batch, too.
    for first in range(0, max(len(children.bodies), 1), CHUNK):
        settlement.spawn(connection, attempt.job_id, children, children.bodies[first : first + CHUNK])
