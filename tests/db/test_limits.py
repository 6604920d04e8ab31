"""The name of a phase's rate limit: computed by SQL for each phase that a job enters, and kept at every gate."""

from __future__ import annotations

from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.db import clock, steps
from tests.db.steps import Db
from tests.db.test_rate_limit_gate import admitted, call, next_due

NAME = "SELECT pipeline.limit_name(%s, %s)"


def limit(db: Db, queue: str, name: str | None, *, rate: float | None = None, burst: float = 1) -> None:
    """As ``pipeline migrate`` puts it in force."""
    db.execute("UPDATE pipeline.phases SET rate_limit = %s WHERE queue = %s", (name, queue))
    if rate is not None:
        db.execute("SELECT pipeline.declare_rate_limit(%s, %s, %s)", (name, rate, burst))


def names(db: Db, job: UUID) -> tuple[str | None, str | None]:
    """The job's, and that of its row at the gate."""
    waiting = steps.waiting(db, job)
    return steps.job(db, job)["rate_limit"], waiting["rate_limit"] if waiting else None


@pytest.mark.parametrize(
    ("pattern", "body", "name"),
    [
        ("wikidata", {}, "wikidata"),
        ("shop:{shop}", {"shop": "north"}, "shop:north"),
        ("{shop}", {"shop": 17}, "17"),
        ("{a}/{b}", {"a": "{b}", "b": "x"}, "{b}/x"),
        ("shop:{shop}", {}, None),
        ("shop:{shop}", {"shop": ""}, None),
        ("shop:{shop}", {"shop": True}, None),
        ("shop:{shop}", {"shop": 1.5}, None),
        ("shop:{shop}", {"shop": ["north"]}, None),
    ],
)
def test_a_name_is_made_of_texts_and_whole_numbers_of_the_body(
    database: Db, pattern: str, body: dict[str, object], name: str | None
) -> None:
    assert steps.one(database, NAME, pattern, Jsonb(body)) == name


def test_a_long_name_is_shortened_and_stays_its_own(database: Db) -> None:
    one, other = (steps.one(database, NAME, "shop:{shop}", Jsonb({"shop": "x" * 300 + end})) for end in "ab")
    assert one != other and len(one) <= 200 and one.startswith("shop:xxx")


def test_each_phase_has_its_own_name_and_a_given_one_wins_in_the_first(database: Db) -> None:
    limit(database, "triple.first", "one")
    limit(database, "triple.second", "shop:{shop}")
    declared = steps.submit(database, "triple", {"shop": "north"})
    given = steps.submit(database, "triple", {"shop": "north"}, rate_limit="given")
    assert names(database, declared) == ("one", "one") and names(database, given) == ("given", "given")
    for job in (declared, given):
        assert steps.complete(database, steps.hold(database, job))["verdict"] == "handed_over"
        assert names(database, job) == ("shop:north", "shop:north")
        steps.complete(database, steps.hold(database, job))
        assert names(database, job) == (None, None)


def test_a_worker_continues_under_a_limit_that_holds_nobody(database: Db) -> None:
    """And is told its name."""
    limit(database, "triple.second", "shop:{shop}")
    hold = steps.held(database, "triple", body={"shop": "north"})
    answer = steps.complete(database, hold, continuing="triple.second")
    assert (answer["verdict"], answer["rate_limit"]) == ("continued", "shop:north")


@pytest.mark.parametrize("how", ["rate", "pause", "breaker"])
def test_a_worker_does_not_continue_under_a_limit_that_holds_jobs(database: Db, how: str) -> None:
    """The gate decides whose turn it is."""
    limit(database, "triple.second", "api", rate=1 if how == "rate" else None)
    if how == "pause":
        database.execute("SELECT pipeline.pause_rate_limit('api', now() + interval '1 minute', 'retry_after')")
    if how == "breaker":
        database.execute("INSERT INTO pipeline.breakers (name, open_until) VALUES ('api', now())")
    hold = steps.held(database, "triple")
    assert steps.complete(database, hold, continuing="triple.second")["verdict"] == "handed_over"
    assert admitted(database) == ([] if how == "pause" else [hold.job])
    said = {"rate": "queued", "pause": "retry_after", "breaker": "queued"}[how]
    assert steps.one(database, "SELECT waits_for FROM pipeline.job_status(ARRAY[%s::uuid])", hold.job) == said


def test_the_second_phase_keeps_its_rate_and_its_order(database: Db) -> None:
    """Five jobs come to it at once: one a second goes, in the order in which they came."""
    limit(database, "triple.second", "api", rate=1)
    jobs = [steps.submit(database, "triple") for _ in range(5)]
    for job in admitted(database):
        steps.claim(database, job)
        steps.complete(database, steps.Hold(job, 1))
    for job in jobs:
        assert admitted(database) == [job]
        assert call_second(database, job) is None
        clock.let_pass(database, 1)


def call_second(db: Db, job: UUID) -> float | None:
    assert steps.claim(db, job)["rate_limit"] == "api"
    [permit] = steps.rows(db, "SELECT granted, wait FROM pipeline.take_permits('api', %s, 1, 0.25)", job)
    return None if permit["granted"] else float(permit["wait"])


def test_names_from_one_template_have_its_rate_each(database: Db) -> None:
    """Nobody made a row for them before; one that was set has its own rate."""
    limit(database, "single.act", "shop:{shop}", rate=1)
    database.execute("SELECT pipeline.set_rate_limit('shop:vip', 1000)")
    jobs = {shop: [steps.submit(database, body={"shop": shop}) for _ in range(3)] for shop in ("north", "south", "vip")}
    assert set(admitted(database)) == {jobs["north"][0], jobs["south"][0], *jobs["vip"]}
    for shop in ("north", "south"):
        claimed = steps.claim(database, jobs[shop][0])
        permit = "SELECT granted, wait FROM pipeline.take_permits(%s, %s, 1, 0.25)"
        assert steps.rows(database, permit, claimed["rate_limit"], jobs[shop][0])[0]["granted"] == 1
    assert admitted(database) == []
    assert steps.rows(database, "SELECT name, template FROM pipeline.rate_limits WHERE name LIKE 'shop:n%%'") == [
        {"name": "shop:north", "template": "shop:{shop}"}
    ]
    clock.let_pass(database, 1)
    assert set(admitted(database)) == {jobs["north"][1], jobs["south"][1]}


def test_a_declared_rate_changes_with_the_code_unless_it_was_set(database: Db) -> None:
    rate = "SELECT rate FROM pipeline.rate_limits WHERE name = 'api'"
    declare = "SELECT pipeline.declare_rate_limit('api', %s, NULL)"
    database.execute(declare, (5,))
    database.execute(declare, (6,))
    assert steps.one(database, rate) == 6
    database.execute("SELECT pipeline.set_rate_limit('api', 2)")
    database.execute(declare, (7,))
    assert steps.one(database, rate) == 2
    assert steps.one(database, "SELECT pipeline.unset_rate_limit('api')") and steps.one(database, rate) == 7
    assert not steps.one(database, "SELECT pipeline.unset_rate_limit('nobody')")


def test_a_job_that_waits_for_an_event_comes_to_its_limit_after_that(database: Db) -> None:
    """The gate lets nobody through who waits for somebody else."""
    limit(database, "triple.second", "api", rate=1)
    waits = [steps.held(database, "triple") for _ in range(2)]
    for hold in waits:
        steps.complete(database, hold, following={"event": "approved"})
        assert names(database, hold.job) == ("api", None)
    assert admitted(database) == []
    for hold in waits:
        database.execute("SELECT pipeline.signal(%s, 'approved')", (hold.job,))
        assert names(database, hold.job) == ("api", "api")
    assert admitted(database) == [waits[0].job]


def test_a_wait_whose_time_is_over_ends_at_the_limit_too(database: Db) -> None:
    limit(database, "triple.second", "api", rate=1)
    waits = [steps.held(database, "triple") for _ in range(2)]
    for hold in waits:
        steps.complete(database, hold, following={"event": "approved", "after": 5})
    clock.let_pass(database, 6)
    assert len(admitted(database)) == 1 and len(admitted(database)) == 0


def test_a_key_has_its_turn_before_the_limit_in_every_phase(database: Db) -> None:
    """ADR 14.7: who waits for a turn is not in the line of the limit, and keeps the turn in the next phase's line."""
    database.execute(
        "INSERT INTO pipeline.turns (workflow, field, per_key, in_order) VALUES ('triple', 'shop', 1, false)"
    )
    database.execute(
        "UPDATE pipeline.phases SET turns_id = (SELECT max(id) FROM pipeline.turns) WHERE workflow = 'triple'"
    )
    for queue in ("triple.first", "triple.second"):
        limit(database, queue, "api", rate=1)
    first, second, other = (steps.submit(database, "triple", {"shop": shop}) for shop in ("a", "a", "b"))
    assert names(database, second) == ("api", None)
    assert admitted(database) == [first]
    assert names(database, other) == ("api", "api") and names(database, second) == ("api", None)
    assert call(database, first) is None
    assert steps.complete(database, steps.Hold(first, 1), continuing="triple.second")["verdict"] == "handed_over"
    row = steps.waiting(database, first)
    assert row is not None and row["has_turn"] and row["rate_limit"] == "api"
    assert names(database, second) == ("api", None)


def test_a_replay_with_another_body_has_another_name(database: Db) -> None:
    limit(database, "single.act", "shop:{shop}")
    hold = steps.held(database, body={"shop": "north"})
    steps.fail(database, hold)
    database.execute("SELECT pipeline.replay(%s, NULL, NULL, %s)", (hold.job, Jsonb({"shop": "south"})))
    assert names(database, hold.job) == ("shop:south", "shop:south")


def test_a_replaced_body_has_another_name(database: Db) -> None:
    limit(database, "single.act", "shop:{shop}")
    job = steps.submit(database, body={"shop": "north"}, key="k", unique="replace")
    assert steps.submit(database, body={"shop": "south"}, key="k", unique="replace") == job
    assert names(database, job) == ("shop:south", "shop:south")


def test_a_body_that_does_not_fill_the_name_comes_to_a_worker_that_says_so(database: Db) -> None:
    """SQL does not refuse it: a hook or a schedule that submits must not fail by it."""
    limit(database, "single.act", "shop:{shop}", rate=1)
    job = steps.submit(database)
    assert admitted(database) == [job]
    assert steps.claim(database, job)["rate_limit"] == ""


def test_a_job_from_before_its_phase_had_a_limit_is_told_it_at_its_claim(database: Db) -> None:
    job = steps.submit(database, body={"shop": "north"})
    limit(database, "single.act", "shop:{shop}")
    admitted(database)
    assert steps.claim(database, job)["rate_limit"] == "shop:north"


def test_verify_finds_who_waits_for_another_limit_and_who_waits_for_no_end(database: Db) -> None:
    """Repaired, they stand where they belong."""
    limit(database, "single.act", "api", rate=0.001)
    jobs = [steps.submit(database) for _ in range(3)]
    admitted(database)
    database.execute("UPDATE pipeline.outbox SET rate_limit = 'other' WHERE job_id = %s", (jobs[1],))
    database.execute("UPDATE pipeline.outbox SET rate_limit = NULL WHERE job_id = %s", (jobs[2],))
    found = {row["subject"]: row["problem"] for row in steps.rows(database, "SELECT * FROM pipeline.verify(true)")}
    assert found == {
        str(jobs[1]): "waits for another rate limit than its own",
        str(jobs[2]): "waits for no end",
    }
    admitted(database)
    assert [names(database, job)[1] for job in jobs[1:]] == ["api", "api"]
    assert steps.rows(database, "SELECT * FROM pipeline.verify(false)") == []
    assert next_due(database)[0] is None
