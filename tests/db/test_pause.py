"""pipeline.pause_phases and pipeline.resume_phases: an operator shuts and opens gates."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.db import steps
from tests.db.steps import Db, Row

FOREVER = datetime.max.replace(tzinfo=UTC)


def pause(db: Db, workflow: str | None, phase: str | None = None, until: str = "infinity") -> list[Row]:
    return steps.rows(
        db, "SELECT * FROM pipeline.pause_phases(%s, %s, %s::text::timestamptz) ORDER BY queue", workflow, phase, until
    )


def resume(db: Db, workflow: str | None, phase: str | None = None) -> list[tuple[str, bool]]:
    found = steps.rows(db, "SELECT * FROM pipeline.resume_phases(%s, %s) ORDER BY queue", workflow, phase)
    return [(row["queue"], row["was_paused"]) for row in found]


def sent(db: Db) -> list[object]:
    return [row["job_id"] for row in steps.admit(db)]


def test_nothing_is_sent_to_a_paused_workflow_until_it_is_resumed(database: Db) -> None:
    """Other workflows are not concerned."""
    waits, goes = steps.submit(database, "triple"), steps.submit(database)
    assert {row["queue"]: row["paused_until"] for row in pause(database, "triple")} == {
        "triple.first": FOREVER,
        "triple.second": FOREVER,
        "triple.third": FOREVER,
    }
    assert sent(database) == [goes]
    assert resume(database, "triple") == [("triple.first", True), ("triple.second", True), ("triple.third", True)]
    assert sent(database) == [waits]


def test_one_phase_can_be_paused_alone(database: Db) -> None:
    """A job that runs finishes its phase, and waits before the next; a message that was sent is not claimed."""
    hold = steps.held(database, "triple")
    assert len(pause(database, "triple", "second")) == 1
    assert steps.complete(database, hold, continuing="triple.second")["verdict"] == "handed_over"
    assert sent(database) == []
    resume(database, "triple", "second")
    assert sent(database) == [hold.job]
    pause(database, "triple", "second")
    assert steps.claim(database, hold.job)["verdict"] == "paused"


def test_a_longer_pause_stands(database: Db) -> None:
    """Whether an operator or an outside system asked for it."""
    pause(database, "single", until="2999-01-01 UTC")
    [row] = pause(database, "single", until="2998-01-01 UTC")
    assert row["paused_until"] == datetime(2999, 1, 1, tzinfo=UTC)
    pause(database, "single")
    database.execute("SELECT pipeline.pause('single.act', 5)")
    assert pause(database, "single", until="2999-01-01 UTC")[0]["paused_until"] == FOREVER
    assert resume(database, "single") == [("single.act", True)]
    assert resume(database, "single") == [("single.act", False)]


def test_a_relay_that_sleeps_is_woken_by_the_resumption(database: Db) -> None:
    """A pause without an end is nothing to wait for."""
    job = steps.submit(database)
    pause(database, "single")
    assert steps.one(database, "SELECT seconds FROM pipeline.next_due()") is None
    database.execute("LISTEN pipeline_relay")
    assert steps.admit(database, asleep=True) == []
    resume(database, "single")
    assert len(list(database.notifies(timeout=5, stop_after=1))) == 1
    assert sent(database) == [job]


def test_a_name_that_nobody_has_pauses_nothing(database: Db) -> None:
    assert pause(database, "nonsense") == [] == resume(database, "single", "nonsense")


def test_everything_can_be_paused_at_once(database: Db) -> None:
    """Every phase of every workflow, and each is resumed by itself or with all others."""
    jobs = [steps.submit(database, "triple"), steps.submit(database)]
    known = steps.one(database, "SELECT count(*) FROM pipeline.phases")
    assert len(pause(database, None)) == known
    assert sent(database) == []
    assert resume(database, "triple", "first") == [("triple.first", True)]
    assert sent(database) == jobs[:1]
    assert len(resume(database, None)) == known
    assert sent(database) == jobs[1:]
