"""The gateway: each statement against PostgreSQL, over the driver of its callers, and the rows it makes of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from pipeline.declare.phase import PhaseSpec
from pipeline.dev.services import Servers
from pipeline.store import engine as engines
from pipeline.store.engine import Wire
from pipeline.store.gateway import (
    client,
    liveness,
    reading,
    reconciliation,
    recovery,
    sending,
    session,
    settlement,
    upkeep,
)
from pipeline.store.gateway.callers import run
from pipeline.store.gateway.settlement import Crash, Fail, Release, Retry, Snooze, Transition
from pipeline.store.group_commit import (
    Answer,
    Ask,
    Completed,
    Completion,
    Continued,
    Group,
    GroupStatement,
    HandedOver,
    Keep,
    Locked,
    Lost,
    Repeated,
    Succeeded,
    ThreadSignal,
    complete_all,
)
from tests.attempts import attempt
from tests.databases import Lasting
from tests.db import steps
from tests.db.conftest import Connect
from tests.db.steps import Db, Hold

NOBODY = liveness.Report(None, "{}", [], "{}", 0)


@pytest.fixture
def pooled(servers: Servers, lasting: Lasting, database: Db) -> Iterator[Connection]:
    """As the front and a worker's threads have one; each statement commits by itself here."""
    url = servers.postgres.url(lasting.name)
    engine = engines.engine("postgresql+psycopg://" + url.split("://", 1)[1])
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
    engine.dispose()


def complete(pooled: Connection, hold: Hold, continuing: str | None = None, result: str | None = None) -> Answer:
    held = attempt(PhaseSpec("any", "phase"), hold.job, hold.fence)
    [answer] = complete_all(pooled, 1, [Completion(held, result, continuing)])
    return answer


@pytest.mark.parametrize(
    ("transition", "verdict"),
    [
        (Retry("away", 1.5), "retried"),
        (Fail("not found"), "failed"),
        (Snooze("rate_limit", 1.0, "slow down", asked=True), "snoozed"),
        (Snooze("lost_connection", 0.0, None, asked=False), "snoozed"),
        (Release(), "released"),
        (Crash("signal 9"), "crashed"),
    ],
)
def test_a_transition_is_made_once(database: Db, pooled: Connection, transition: Transition, verdict: str) -> None:
    """Asked again, it answers how the attempt ended; under a wrong fence it is lost."""
    hold = steps.held(database)
    for wrong in steps.wrong_fences(hold):
        assert settlement.settle(pooled, wrong.job, wrong.fence, transition) == "lost"
    assert settlement.settle(pooled, hold.job, hold.fence, transition) == verdict
    assert settlement.settle(pooled, hold.job, hold.fence, transition) == verdict
    assert settlement.last_outcome(pooled, hold.job) == verdict
    assert steps.outcomes(database, hold.job) == [verdict]


def test_each_answer_to_a_completion_has_its_type(database: Db, connect: Connect, pooled: Connection) -> None:
    """What an answer does not have, its type does not either."""
    last, first, continues = steps.held(database), steps.held(database, "triple"), steps.held(database, "triple")
    with connect().transaction() as held:
        held.connection.execute("SELECT 1 FROM pipeline.jobs WHERE id = %s FOR UPDATE", (last.job,))
        assert complete(pooled, last) == (Locked(), False)
    assert complete(pooled, Hold(last.job, last.fence + 1)) == (Lost(), False)
    assert complete(pooled, last) == (Succeeded(), True)
    assert complete(pooled, last) == (Repeated(), False)
    answer, moved = complete(pooled, continues, "triple.second", '{"n": 1}')
    assert isinstance(answer, Continued) and moved
    assert answer.fence == continues.fence + 1
    assert complete(pooled, continues, "triple.second") == (answer, False)
    assert complete(pooled, first) == (HandedOver(), True)


class _Delivery:
    id = 77


def test_one_statement_for_claims_and_completions_answers_each_in_its_place(
    servers: Servers, lasting: Lasting, database: Db
) -> None:
    """Completions first, then steps, then claims, whatever order PostgreSQL answers in."""
    number = steps.sign_on(database, "w1")
    ends, lost, next_one = steps.held(database), steps.held(database), steps.submit(database)
    steps.admit(database)
    group = GroupStatement(servers.postgres.url(lasting.name), "w1", number)
    row = steps.job(database, next_one)
    asks = [_ask(uuid4(), 1), _ask(next_one, row["send"])]
    completions = [_completion(Hold(lost.job, 99)), _completion(ends)]
    keeps = [_keep(Hold(lost.job, 99)), _keep(lost)]
    completed, kept, claimed = group.execute(Group(completions, keeps, asks))
    assert completed == [Lost(), Succeeded()]
    assert kept == ["lost", "won"]
    assert [one.verdict for one in claimed] == ["unknown_job", "claimed"]
    assert (claimed[1].fence, claimed[1].max_attempts, claimed[1].body) == (1, row["max_attempts"], "{}")
    assert (claimed[1].trace_id, claimed[1].span_id, claimed[1].holder) == (row["trace_id"], row["span_id"], None)
    handed: list[Completed]
    handed, _, _ = group.execute(Group([_completion(steps.held(database, "triple"))]))
    assert isinstance(handed[0], HandedOver)
    assert group._connection is not None
    group._connection.close()


def _keep(hold: Hold) -> Keep:
    return Keep(_completion(hold).attempt, "fetch", '"a page"', ThreadSignal())


def _ask(job: object, send: int) -> Ask:
    return Ask(job, "single.act", send, None, _Delivery())  # type: ignore[arg-type]


def _completion(hold: Hold) -> Completion:
    from types import SimpleNamespace

    attempt = SimpleNamespace(job_id=hold.job, fence=hold.fence, spec=SimpleNamespace(queue="single.act"))
    return Completion(attempt, None)  # type: ignore[arg-type]


def test_what_was_not_confirmed_is_sent_again_by_the_relay(database: Db, wire: Wire) -> None:
    """Under a new number."""
    sending.listen(wire)
    jobs = [steps.submit(database), steps.submit(database)]
    (first, second), horizon = sending.admit(wire, 1, 10, [], sleeps=False)
    assert horizon is None
    assert [first.job_id, second.job_id] == jobs
    assert sending.still_sent(wire, jobs, [1, 1]) == set(jobs)
    sending.unsend(wire, jobs, [first.send, second.send])
    assert sending.still_sent(wire, jobs, [1, 1]) == set()
    assert [steps.job(database, job)["send"] for job in jobs] == [2, 2]
    assert sending.next_due(wire).seconds is None
    nothing, horizon = sending.admit(wire, 1, 10, ["single.act"], sleeps=True)
    assert nothing == [] and horizon is not None
    assert sending.open_before(wire, horizon.number) <= horizon.open
    assert sending.admit(wire, 1, 10, ["single.act"], sleeps=None) == ([], None)


def test_what_is_given_back_is_sent_anew_and_its_message_is_void(
    database: Db, pooled: Connection, connect: Connect
) -> None:
    """Of a running job it may be all that finds it again: nothing is said of that one, nor of one that has ended."""
    waits, locked, runs, ended = (steps.submit(database) for _ in range(4))
    steps.admit(database)
    for job in (runs, ended):
        assert steps.claim(database, job)["verdict"] == "claimed"
    steps.complete(database, Hold(ended, 1))
    messages = [(job, 1) for job in (waits, locked, runs, ended)]
    other = connect()
    with other.transaction():
        steps.rows(other, "SELECT id FROM pipeline.jobs WHERE id = %s FOR UPDATE", locked)
        assert sending.send_anew(pooled, messages) == {(waits, 1): True, (locked, 1): False}
    assert sending.send_anew(pooled, messages) == {(waits, 1): True, (locked, 1): True}
    assert [steps.job(database, job)["send"] for job in (waits, locked, runs)] == [2, 2, 1]
    assert {row["job_id"] for row in steps.admit(database)} == {waits, locked}


def test_a_worker_finds_what_it_had_continued_with(database: Db, pooled: Connection) -> None:
    """After an answer was lost."""
    number = steps.sign_on(database, "w1")
    handed, gone_on = steps.held(database, "triple"), steps.held(database, "triple")
    steps.complete(database, gone_on, worker_no=number, continuing="triple.second")
    steps.complete(database, handed, worker_no=number)
    jobs = [handed.job, gone_on.job]
    assert sending.continued(pooled, number, jobs, [1, 1]) == [(gone_on.job, gone_on.fence + 1)]


def test_a_worker_lives_until_it_signs_off(database: Db, wire: Wire, pooled: Connection) -> None:
    """Its row, its lock, its heartbeat."""
    number = liveness.register(wire, "w9", host="here", pid=1, threads=2, queues=["single.act"])
    assert not settlement.alive(pooled, "w9").alive
    assert recovery.missing_workers(wire) == [number]
    assert liveness.is_known(wire, number, "w9") and not liveness.is_known(wire, number, "another")
    liveness.note_epoch(wire)
    liveness.take_lock(wire, number)
    assert settlement.alive(pooled, "w9").alive
    hold, gone = steps.held(database, worker="w9"), uuid4()
    lost = liveness.heartbeat(wire, "w9", [hold.job, gone], [hold.fence, 1], NOBODY)
    assert lost == [(gone, 1, "deleted")]
    steps.crash(database, hold)
    assert liveness.refund_crashes(wire, "w9", {hold.job: hold.fence}) == [hold.job]
    liveness.sign_off(wire, number, clean=True)
    assert recovery.missing_workers(wire) == []
    settlement.tell_maintenance(pooled)


def test_a_dead_workers_job_is_found_and_taken(database: Db, wire: Wire, pooled: Connection) -> None:
    """By a message, by maintenance, by verify."""
    steps.sign_on(database, "w1", alive=False)
    one, other = steps.held(database), steps.held(database)
    assert {orphan.job_id for orphan in recovery.run_under_a_dead_worker(wire)} == {one.job, other.job}
    send = steps.job(database, one.job)["send"]
    taken = settlement.take_over(pooled, one.job, worker_id="w2", send=send, holder="w1", fence=one.fence, delivery=5)
    assert taken == "claimed"
    database.execute("UPDATE pipeline.jobs SET heartbeat_at = now() - interval '1 day' WHERE id = %s", (other.job,))
    [silent] = recovery.silent_jobs(wire, 1.0)
    assert (silent.job_id, silent.fence, silent.stale) == (other.job, other.fence, True)
    [found] = recovery.reclaim(wire, [], [silent])
    assert (found.job_id, found.queue, found.verdict) == (other.job, "single.act", "stale")
    [problem] = recovery.verify(wire, repair=False)
    assert (problem.subject, problem.detail) == (str(one.job), "w2"), "nobody of that name has signed on"
    assert recovery.dead_letter(wire, other.job) is None


def test_a_failed_job_has_a_dead_letter_and_starts_again(database: Db, wire: Wire, pooled: Connection) -> None:
    """By its message, by its id, or not at all."""
    job = steps.submit(database)
    steps.admit(database)
    assert recovery.undeliverable(wire, job, 1, "given up")
    assert not recovery.undeliverable(wire, job, 1, "given up")
    dead = recovery.dead_letter(wire, job)
    assert dead is not None and (dead.send, dead.max_attempts) == (steps.job(database, job)["send"], 3)
    causes = reading.dead_causes(pooled, None, 10, 100)
    [group] = reading.dead_groups(pooled, causes, 100)
    assert (group.workflow, group.phase, group.jobs) == ("single", "act", 1)
    named = {"workflow": group.workflow, "phase": group.phase, "cause": group.cause}
    assert reading.oldest_dead_jobs(pooled, **named, limit=5) == [job]
    [row] = reading.dead_jobs(pooled, **named, before=steps.submit(database), limit=5)
    assert (row["id"], row["status"]) == (job, "failed")
    assert not client.replay_send(pooled, job, 99)
    assert client.replay_many(pooled, [job], None) == 1
    assert client.discard_many(pooled, [job], "enough") == 0
    assert client.request_send(pooled, job, "single.act") in ("accepted", "already_queued")
    assert run(pooled, client.cancel(job, "enough"))
    assert not run(pooled, client.cancel(job, "enough"))
    assert run(pooled, client.replay(job)), "what was cancelled can be replayed"
    assert not run(pooled, client.replay(job))


def test_lost_messages_are_counted_and_sent_again(database: Db, wire: Wire) -> None:
    """With the management API and without it."""
    assert not reconciliation.anything_sent(wire)
    job = steps.submit(database)
    steps.admit(database)
    later = session.clock(wire) + timedelta(seconds=1)
    assert reconciliation.anything_sent(wire)
    [expected] = reconciliation.expected_messages(wire, 0)
    assert (expected.queue, expected.queued, expected.running) == ("single.act", 1, 0)
    assert expected.newest <= expected.now
    assert reconciliation.unclaimed(wire, later) == {"single.act": 1}
    assert reconciliation.overtaken(wire, later, 60) == {}
    assert reconciliation.unstarted_messages(wire, later, timedelta(seconds=1)) == []
    assert reconciliation.resend_overtaken(wire, "single.act", later, 60) == 0
    assert reconciliation.resend(wire, "single.act", later, "lost_in_broker") == 1
    assert steps.job(database, job)["send"] == 2
    steps.admit(database)
    assert reconciliation.resend_unclaimed(wire, "single.act", later + timedelta(seconds=9), 0) == 1


def test_maintenance_counts_reports_and_prunes(database: Db, wire: Wire, pooled: Connection) -> None:
    """Nothing of it needs a worker."""
    upkeep.listen(wire)
    assert upkeep.take_sweep_lock(wire, 1)
    hold = steps.held(database)
    steps.complete(database, hold)
    steps.submit(database)
    steps.admit(database)
    assert next(depth for depth in upkeep.depths(wire) if depth.queue == "single.act") == ("single.act", 1, 0)
    assert upkeep.pools(wire) == []
    until, first = upkeep.window(wire, 60)
    assert until - first == timedelta(seconds=60)
    [ended] = upkeep.ended(wire, first, until + timedelta(seconds=5))
    assert (ended.queue, ended.succeeded, ended.failed) == ("single.act", 1, 0)
    upkeep.roll_up(wire)
    assert upkeep.finish_batches(wire) is False
    assert upkeep.prune(wire, 0, 10, None) == 1
    assert upkeep.undeclared(pooled) == []


def test_the_numbers_of_an_empty_cluster_are_read(pooled: Connection) -> None:
    """Every statement behind /v1/stats and /metrics."""
    assert {phase.queue for phase in reading.phases(pooled, 10)} >= {"single.act", "triple.first"}
    assert reading.workers(pooled) == [] and reading.worker_states(pooled) == {}
    assert [(one.name, one.rate, one.ahead) for one in reading.rate_limits(pooled)] == [("wikidata", 5.0, 0.0)]
    assert reading.counters(pooled) == {}
    assert reading.relay_lag(pooled) == 0 and reading.recent_attempts(pooled) == []
    assert reading.moment(pooled, 10).open_batches == 0
    assert [reading.history(pooled, 3, None, None, quarters=quarters) for quarters in (False, True)] == ["[]", "[]"]


def test_the_server_says_who_it_is(wire: Wire, pooled: Connection) -> None:
    """For the doctor, the folders of running jobs and the clocks."""
    assert session.server(pooled).version >= 140000
    assert isinstance(session.commits_durably(pooled), bool)
    assert session.standbys(pooled) == (0, False)
    assert session.identity(wire) is not None and session.address(wire) is not None
    assert abs(session.clock(wire) - datetime.now(UTC)) < timedelta(minutes=1)
    with pooled.engine.begin() as connection:
        session.bound_the_front(connection)
        session.bound_lock_waits(connection, 200)
        [row] = session.read(connection, "SELECT current_setting('lock_timeout') AS it, :n AS n", {"n": 1})
    assert row == {"it": "200ms", "n": 1}


def test_who_falls_asleep_waits_for_everybody_who_began_before(database: Db, wire: Wire, connect: Connect) -> None:
    """Also for the youngest, with which a snapshot ends before it begins."""
    with connect().transaction() as open_one:
        open_one.connection.execute("SELECT pg_current_xact_id()")
        _, horizon = sending.admit(wire, 1, 10, [], sleeps=True)
        assert horizon is not None and horizon.open >= 1
        before = sending.open_before(wire, horizon.number)
        assert before >= 1
    assert sending.open_before(wire, horizon.number) < before
