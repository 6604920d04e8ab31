"""Schedules that are declared in code: what is refused at once, and what is in force (rule 15)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import Engine

from pipeline import BadInput, Job, Workflow, schedule, schedules
from pipeline.declare import registry
from pipeline.declare.registry import workflows
from pipeline.store.register import Difference, introduce, register
from tests.db import steps
from tests.db.steps import Db

SEEN = "SELECT name, coalesce(cron, every::text) AS at, source, paused_at IS NOT NULL AS paused FROM pipeline.schedules ORDER BY 1"


class Audit(BaseModel):
    customer: str
    depth: int = 3


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Workflow[Audit, Any]:
    """As a process has it that begins anew."""
    return version(monkeypatch)


def version(monkeypatch: pytest.MonkeyPatch) -> Workflow[Audit, Any]:
    others = {name: one for name, one in workflows().items() if name != "audit"}
    monkeypatch.setattr(registry, "_workflows", others)
    made = Workflow("audit", body=Audit)

    @made.phase
    def look(job: Job[Audit]) -> None: ...

    return made


def booted(engine: Engine) -> list[Difference]:
    """A worker starts with this code."""
    with engine.begin() as connection:
        return introduce(connection, [workflows()["audit"]], 300.0)


def migrated(engine: Engine) -> None:
    with engine.begin() as connection:
        register(connection, [workflows()["audit"]], 300.0)


def in_force(db: Db) -> dict[str, tuple[str, str, bool]]:
    return {row["name"]: (row["at"], row["source"], row["paused"]) for row in steps.rows(db, SEEN)}


def test_the_first_worker_registers_what_code_declares(
    audit: Workflow[Audit, Any], engine: Engine, database: Db
) -> None:
    """With all that was said; a second worker of that version has nothing to say."""
    audit.schedule(
        "weekly", "0 7 * * 1", timezone="Europe/Paris", body=Audit(customer="a"), overlap="queue", tags=["vip"]
    )
    audit.schedule(
        "often", every=timedelta(minutes=5), body=Audit(customer="b"), catch_up=timedelta(hours=1), priority=3
    )
    assert booted(engine) == booted(engine) == []
    with engine.connect() as connection:
        often, weekly = schedules(connection, "audit")
    assert (weekly.cron, weekly.timezone, weekly.overlap, weekly.tags) == (
        "0 7 * * 1",
        "Europe/Paris",
        "queue",
        ["vip"],
    )
    assert (weekly.body, weekly.catch_up, weekly.source) == ({"customer": "a", "depth": 3}, 1, "code")
    assert (often.every, often.cron, often.catch_up, often.priority) == (
        timedelta(minutes=5),
        None,
        timedelta(hours=1),
        3,
    )


def test_only_a_migration_changes_them(
    audit: Workflow[Audit, Any], engine: Engine, database: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker says what differs. What is gone from the code goes, a pause stays, what was made at run time is not touched."""
    body = Audit(customer="a")
    audit.schedule("nightly", "0 2 * * *", body=body)
    audit.schedule("gone", "@daily", body=body)
    booted(engine)
    steps.one(database, "SELECT pipeline.pause_schedule('audit', 'nightly')")
    with engine.begin() as connection:
        schedule(connection, "audit", "mine", every=timedelta(hours=1), body=body)
    later = version(monkeypatch)
    later.schedule("nightly", "0 3 * * *", timezone="Europe/Paris", body=body)
    later.schedule("new", "@hourly", body=body)
    before = in_force(database)
    assert booted(engine) == [
        Difference("audit", None, "schedule gone", "@daily", None),
        Difference("audit", None, "schedule new", None, "@hourly"),
        Difference("audit", None, "schedule nightly: cron", "0 2 * * *", "0 3 * * *"),
        Difference("audit", None, "schedule nightly: timezone", "UTC", "Europe/Paris"),
    ]
    assert in_force(database) == before
    migrated(engine)
    assert in_force(database) == {
        "mine": ("01:00:00", "run time", False),
        "new": ("@hourly", "code", False),
        "nightly": ("0 3 * * *", "code", True),
    }
    assert booted(engine) == []


def test_a_migration_that_changes_nothing_leaves_every_row_alone(
    audit: Workflow[Audit, Any], engine: Engine, database: Db
) -> None:
    """A leader that works out a moment just now is not disturbed."""
    audit.schedule("nightly", "0 2 * * *", body=Audit(customer="a"))
    migrated(engine)
    before = steps.rows(database, "SELECT revision, xmin FROM pipeline.schedules")
    migrated(engine)
    assert steps.rows(database, "SELECT revision, xmin FROM pipeline.schedules") == before


def test_what_was_made_at_run_time_can_move_into_the_code(
    audit: Workflow[Audit, Any], engine: Engine, database: Db
) -> None:
    """From then on it is changed there."""
    migrated(engine)
    body = Audit(customer="a")
    with engine.begin() as connection:
        schedule(connection, "audit", "nightly", "@daily", body=body)
    audit.schedule("nightly", "@daily", body=body)
    migrated(engine)
    assert in_force(database) == {"nightly": ("@daily", "code", False)}
    with (
        engine.begin() as connection,
        pytest.raises(BadInput, match='declared in code: change it there and run "pipeline migrate"'),
    ):
        schedule(connection, "audit", "nightly", "@hourly", body=body)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"cron": "0 25 * * *"}, r"^'0 25 \* \* \*' is not a cron expression \(bad hour\)"),
        ({"cron": "@daily", "timezone": "Mars/Olympus"}, "there is no time zone 'Mars/Olympus'"),
        ({}, "either a cron expression or every="),
        ({"every": timedelta(seconds=0.1)}, "every is whole seconds"),
        ({"cron": "@daily", "overlap": "maybe"}, "overlap is allow, skip, queue or cancel, not 'maybe'"),
        ({"cron": "@daily", "catch_up": -1}, "catch_up is a number of moments up to 1000"),
        ({"cron": "@daily", "catch_up": timedelta(days=32)}, "an age of up to 31 days"),
        ({"cron": "@daily", "priority": 10}, "priority 10 is outside"),
        ({"cron": "@daily", "tags": "vip"}, "tags is a list of words, not the text 'vip'"),
        ({"cron": "@daily", "tags": ["t"] * 20}, "at most 19 tags"),
        ({"cron": "@daily", "name": "Weekly!"}, "'Weekly!' is not a schedule's name"),
        ({"cron": "@daily", "body": {"customer": 1}}, "the body does not fit workflow audit: customer"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(
    audit: Workflow[Audit, Any], wish: dict[str, Any], said: str
) -> None:
    """Before any server is asked."""
    with pytest.raises(BadInput, match=said):
        audit.schedule(**{"name": "weekly", "body": Audit(customer="a"), **wish})


def test_a_name_is_unique_in_its_workflow(audit: Workflow[Audit, Any]) -> None:
    audit.schedule("weekly", "@weekly", body=Audit(customer="a"))
    with pytest.raises(ValueError, match="already has a schedule named 'weekly'"):
        audit.schedule("weekly", "@daily", body=Audit(customer="a"))
