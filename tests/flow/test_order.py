"""G9: oldest first within a priority, and earlier phases before later ones."""

from __future__ import annotations

import pytest

from pipeline import submit_many
from tests.place import Place

pytestmark = pytest.mark.usefixtures("with_more")

JOBS = 20


def test_earlier_phases_go_before_later_ones(place: Place) -> None:
    """A thread that can choose takes the first phase's message, so that old jobs do not keep new ones from starting."""
    late = submit_many(None, "starter", [{}] * JOBS)
    place.db.execute("UPDATE pipeline.jobs SET phase = 'third'")
    place.db.execute(
        "UPDATE pipeline.outbox SET phase_id = (SELECT id FROM pipeline.phases WHERE queue = 'starter.third')"
    )
    early = submit_many(None, "starter", [{}] * JOBS)
    sender = place.worker(queues=("nothing",))
    place.until(
        lambda: place.depth("starter.first") == JOBS and place.depth("starter.third") == JOBS, what="all messages"
    )
    sender.terminate()
    sender.wait()
    place.worker(threads=1)
    place.finished(*late, *early)
    order = [(job, phase) for job, phase, _, _ in place.executions()]
    late_ones = {str(job) for job in late}
    firsts = [n for n, (_, phase) in enumerate(order) if phase == "first"]
    thirds = [n for n, (job, phase) in enumerate(order) if phase == "third" and job in late_ones]
    assert order[0][1] == "first", "the process began with whatever queue came up first"
    # When the next message of the first phase has not arrived yet the thread takes what there is; taken in turn, the
    # means would be the same.
    assert sum(firsts) / JOBS + 3 < sum(thirds) / JOBS
