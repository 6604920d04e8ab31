"""A worker dies between two I/O calls, at every one of the named points; another ends its jobs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from pipeline import JobHandle, submit
from pipeline.declare.errors import BadInput
from pipeline.observe import failpoints
from tests.place import Place, lives
from tests.step_notes import calls
from tests.wait_workflows import crowd, race

pytestmark = pytest.mark.usefixtures("with_steps")

ONE_EACH = """SELECT count(*) FROM (SELECT FROM pipeline.attempts WHERE outcome = 'succeeded'
    GROUP BY job_id, phase HAVING count(*) > 1) twice"""


def killed_at(place: Place, point: str, **settings: str) -> Callable[[], object]:
    """A worker that dies there, if it gets there; call what comes back to wait for its death."""
    place.worker(threads=2, settings={"PIPELINE_FAILPOINTS": point, **settings})
    [victim] = place.pids()
    name = point.split()[-1].partition("=")[0]

    return lambda: place.until(lambda: not lives(victim), 20, f"the worker to die at {name}")


def ends_well(place: Place, *jobs: UUID) -> None:
    """With another worker: every phase has succeeded once, and is in the ledger once at most."""
    place.worker(threads=2)
    assert {row["status"] for row in place.finished(*jobs, timeout=40)} == {"succeeded"}
    assert place.count(ONE_EACH) == 0
    assert place.count("SELECT count(*) - count(DISTINCT (job_id, phase)) FROM ledger") == 0


@pytest.mark.parametrize(
    ("points", "workflow", "body", "rows"),
    [
        ("relay.admitted=kill", "plain", {}, 0),
        ("relay.published=kill", "plain", {}, 0),
        ("relay.published=lose relay.refused=kill", "plain", {}, 0),
        ("relay.published=lose,kill", "plain", {}, 0),
        ("message.received=kill", "plain", {}, 0),
        ("claim.committed=kill", "plain", {}, 0),
        ("claim.committed=lose,kill", "plain", {}, 0),
        ("phase.ended=kill", "plain", {}, 0),
        ("phase.ended=pass,kill", "plain", {}, 0),
        ("step.ended=kill", "stepped", {}, 0),
        ("step.ended=pass,pass,kill", "strolled", {}, 0),
        ("step.committed=kill", "stepped", {}, 0),
        ("step.committed=lose,kill", "strolled", {}, 0),
        ("complete.committed=kill", "plain", {}, 0),
        ("complete.committed=lose,kill", "plain", {}, 0),
        ("complete.committed=pass,kill", "plain", {}, 0),
        ("write.executed=kill", "triple", {}, 3),
        ("write.committed=kill", "triple", {}, 3),
        ("write.committed=lose,kill", "triple", {}, 3),
        ("write.committed=pass,pass,kill", "triple", {}, 3),
        ("own_write.executed=kill", "single", {"do": "own_write"}, 1),
        ("own_write.committed=kill", "single", {"do": "own_write"}, 1),
        ("error.settled=kill", "single", {"do": "flaky"}, 1),
    ],
)
def test_another_worker_ends_the_job(place: Place, points: str, workflow: str, body: dict[str, str], rows: int) -> None:
    """Once, with a row for each phase that writes."""
    wait = killed_at(place, points)
    job = submit(None, workflow, body)
    wait()
    ends_well(place, job)
    assert place.count("SELECT count(*) FROM ledger") == rows


@pytest.mark.parametrize(
    ("points", "workflow", "body", "rows"),
    [
        ("claim.committed=lose complete.committed=lose", "plain", {}, 0),
        ("write.committed=lose", "triple", {}, 3),
        ("own_write.committed=lose", "single", {"do": "own_write"}, 1),
        ("step.committed=lose,pass,lose", "stepped", {}, 0),
        ("step.committed=lose,pass,lose", "strolled", {}, 0),
    ],
)
def test_a_lost_answer_alone_costs_nothing(
    place: Place, points: str, workflow: str, body: dict[str, str], rows: int
) -> None:
    """The same worker asks again, and learns that it had committed."""
    place.worker(threads=2, PIPELINE_FAILPOINTS=points)
    job = submit(None, workflow, body)
    [row] = place.finished(job)
    assert (row["status"], row["crashes"]) == ("succeeded", 0)
    place.until(lambda: place.logs().count(": lose") == points.count("lose"), 10, "the log to tell of it")
    assert place.count(ONE_EACH) == 0
    assert place.count("SELECT count(*) FROM ledger") == rows
    assert all(times == 1 for times in calls(place, job).values())


def test_a_dead_letter_is_one_after_all(place: Place) -> None:
    """The job has failed, and its worker died before it could reject the message."""
    wait = killed_at(place, "error.settled=pass,pass,kill")
    job = submit(None, "single", {"do": "fail"})
    wait()
    place.worker(threads=2)
    assert place.finished(job)[0]["status"] == "failed"
    place.until(lambda: place.depth("single.act.XQ") == 1, 20, "the dead letter")
    assert place.depth("single.act") == 0


def test_a_takeover_is_taken_over(place: Place) -> None:
    place.worker(threads=1)
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    first = place.holder(job)
    os.kill(first, signal.SIGKILL)
    place.until(lambda: not lives(first), 10, "the first to die")
    wait = killed_at(place, "takeover.committed=kill")
    wait()
    ends_well(place, job)
    # After its first crash it runs in a child of its own: the second worker's death is not its doing.
    assert place.job(job)["crashes"] == 1


def test_a_leader_that_reclaimed_is_not_needed_any_more(place: Place) -> None:
    """It leads maintenance and consumes nothing of the job's."""
    wait = killed_at_elsewhere(place)
    place.worker(threads=1, queues=("single.act",))
    job = submit(None, "single", {"do": "sleep", "seconds": 60})
    place.running(job)
    os.kill(place.holder(job), signal.SIGKILL)
    wait()
    ends_well(place, job)


def killed_at_elsewhere(place: Place) -> Callable[[], object]:
    place.worker(threads=1, queues=("plain.alpha",), PIPELINE_FAILPOINTS="reclaim.committed=kill")
    [victim] = place.pids()
    return lambda: place.until(lambda: not lives(victim), 20, "the leader to die")


@pytest.mark.new_vhost
def test_what_a_busy_worker_gave_back_is_sent_once(place: Place) -> None:
    """A quorum queue, one thread, and a job that keeps it busy."""
    wait = killed_at(place, "give_back.committed=kill", PIPELINE_QUEUE_TYPE="quorum")
    jobs = [submit(None, "single", {"do": "sleep", "seconds": 4}) for _ in range(4)]
    wait()
    place.worker(threads=2, settings={"PIPELINE_QUEUE_TYPE": "quorum"})
    assert {row["status"] for row in place.finished(*jobs, timeout=40)} == {"succeeded"}


# ---- jobs that wait for somebody


# It has said so, and has looked for the last time before it waits.
ASLEEP = """SELECT count(*) FROM pg_stat_activity, pipeline.relay_asleep WHERE last_value = 1 AND state = 'idle'
    AND application_name = 'pipeline relay' AND query ~ 'next_due|open_before' AND datname = current_database()"""


def with_waits(place: Place) -> None:
    place.workflows = "tests.workflows,tests.wait_workflows"


def waits_for(place: Place, job: JobHandle[Any]) -> str | None:
    row = place.row("SELECT waits_for FROM pipeline.outbox WHERE job_id = %s", job.id)
    return row["waits_for"] if row else None


@pytest.mark.parametrize(
    ("points", "children"),
    [
        ("children.written=kill", 40),
        ("children.written=pass,kill", 5040),
        ("write.executed=kill", 40),
        ("write.committed=kill", 40),
        ("write.committed=lose", 40),
        ("own_write.executed=kill", 140),
        ("own_write.committed=kill", 140),
        ("own_write.committed=lose", 140),
    ],
)
def test_children_exist_once_if_their_parent_waits_for_them(place: Place, points: str, children: int) -> None:
    """Those of an attempt that died before its commit have never been."""
    with_waits(place)
    dies = points.endswith("kill")
    if dies:
        wait = killed_at(place, points)
    else:
        place.worker(threads=2, PIPELINE_FAILPOINTS=points)
    job = crowd.submit({"children": children})
    if dies:
        wait()
        place.worker(threads=2)
    assert job.result(timeout=120) == [children, children - children // 33, children // 33]
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE workflow = 'page-audit'") == children
    assert place.count("SELECT count(*) FROM pipeline.batches") == 1
    assert place.count(ONE_EACH) == 0
    assert dies or place.attempts(job.id)[-1]["fence"] == 2


@pytest.mark.parametrize("points", ["complete.committed=kill", "complete.committed=lose"])
def test_a_wait_that_is_committed_waits(place: Place, points: str) -> None:
    """Whether its worker heard of the commit or died; nobody else has to begin it anew."""
    with_waits(place)
    if points.endswith("kill"):
        wait = killed_at(place, points)
        job = race.submit({"seconds": 3600})
        wait()
    else:
        place.worker(threads=2, PIPELINE_FAILPOINTS=points)
        job = race.submit({"seconds": 3600})
        place.until(lambda: ": lose" in place.logs(), 20, "the answer to be lost")
    assert waits_for(place, job) == "event:answer"
    place.worker(threads=2)
    place.until(lambda: place.depth("race.ask") == 0, 20, "the message to be acknowledged")
    assert job.signal("answer", "yes") == "delivered"
    assert job.result(timeout=30) == "yes"
    assert [row["outcome"] for row in place.attempts(job.id)] == ["succeeded", "succeeded"]


def test_a_relay_that_dies_when_a_signal_wakes_it(place: Place) -> None:
    """The signal is committed; the next leader finds that the job need not wait any longer."""
    with_waits(place)
    place.worker(threads=1)
    job = race.submit({"seconds": 3600})
    place.until(lambda: waits_for(place, job), 20, "the wait")
    [first] = place.pids()
    os.kill(first, signal.SIGKILL)
    place.until(lambda: not lives(first), 10, "the first to die")
    place.db.execute("SELECT setval('pipeline.relay_asleep', 2)")
    wait = killed_at(place, "relay.woken=kill")
    place.until(lambda: place.count(ASLEEP), 20, "the relay to sleep")
    assert job.signal("answer", "yes") == "delivered"
    wait()
    place.worker(threads=1)
    assert job.result(timeout=30) == "yes"


def test_a_parent_that_was_held_when_its_last_child_ended(place: Place) -> None:
    """The child's end is committed; the leader of maintenance is told, and dies."""
    with_waits(place)
    wait = killed_at(place, "maintenance.woken=kill")
    place.db.execute("SELECT * FROM pipeline.pause_phases('page-audit', NULL, 'infinity')")
    job = crowd.submit({"children": 1})
    place.until(lambda: waits_for(place, job), 20, "the wait")
    with psycopg.connect(place.database_url) as app:
        app.execute("SELECT FROM pipeline.jobs WHERE id = %s FOR UPDATE", (job.id,))
        place.db.execute("SELECT * FROM pipeline.resume_phases('page-audit', NULL)")
        wait()
        ended = "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'page-audit' AND status = 'succeeded'"
        assert place.count(ended) == 1 and (waits_for(place, job) or "").startswith("children:")
    place.worker(threads=1)
    assert job.result(timeout=30) == [1, 1, 0]


def test_every_point_is_killed_at() -> None:
    """And a point that does not exist is refused."""
    told = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in failpoints.POINTS if f"{name}=" not in told] == []
    with pytest.raises(BadInput, match="is not a point"):
        failpoints.arm("claim.comitted=kill")
    with pytest.raises(BadInput, match="is not a point"):
        failpoints.arm("message.received=lose")
