"""No message, whatever is in it, stops a worker, stays in its hands, or touches a job it has no right to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from queue import Empty, PriorityQueue
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import orjson
import psycopg
from dramatiq.worker import ConsumerThread
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pika import BlockingConnection

from pipeline import submit_many
from pipeline.broker.inbound import Inbound, Intake
from pipeline.broker.outbound import Link
from pipeline.broker.topology import SWEEPS, dead_letter_queue, declare
from pipeline.declare.registry import find_phase
from pipeline.journey.message import InvalidEnvelope, read_ref
from pipeline.worker.process import broker
from tests.fuzz.letters import QUEUE, bad, good
from tests.fuzz.scale import dice, tell, times
from tests.place import Place, lives

JOB = UUID("019b0000-0000-7000-8000-000000000001")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)
FIELDS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("queue_name", "actor_name", "args", "kwargs", "options", "message_id"), JSON)
)


class Door:
    """The way in: the broker's delivery, Dramatiq's consumer, the token. Only the connection is a stand-in."""

    def __init__(self) -> None:
        self.spec = find_phase(QUEUE).spec
        self.answers: list[str] = []
        self.channel = SimpleNamespace(
            is_open=True, busy=set(), basic_nack=lambda *_, **__: self.answers.append("refused")
        )
        self.work: PriorityQueue[Any] = PriorityQueue()
        self.thread = ConsumerThread(
            broker=broker(), queue_name=QUEUE, prefetch=1, work_queue=self.work, worker_timeout=1
        )
        self.thread.consumer = SimpleNamespace(
            ack=lambda _: self.answers.append("acknowledged"), nack=lambda _: self.answers.append("refused")
        )  # type: ignore[assignment]
        self.inbound = Inbound(Link("fuzz"), list, "classic")
        self.intake = Intake([QUEUE], 1, self.thread.handle_message)
        self.inbound._add(self.intake, [QUEUE])
        self.moments: set[str] = set()

    def deliver(self, body: bytes) -> str:
        """What became of it; anything it raises would have ended the worker's AMQP thread."""
        self.answers.clear()
        method, properties = SimpleNamespace(delivery_tag=1), SimpleNamespace(headers={})
        self.inbound._deliver(QUEUE, self.channel, method, properties, body)  # type: ignore[arg-type]
        self.intake.unstarted.take()
        try:
            message = self.work.get_nowait().message
        except Empty:
            assert self.answers, f"held by the worker without an answer: {body[:300]!r}"
            return self.answers[0]
        try:
            token = read_ref(self.spec, message.args)
        except InvalidEnvelope:
            return "refused"
        if token.sent_at is not None:
            self.moments.add(token.sent_at)
        return "read"


def test_a_worker_reads_or_refuses_every_envelope(place: Place) -> None:
    """Spoiled, generated, raw; what is read is something that PostgreSQL can take."""
    door, counts, chance, wrong = Door(), Counter[str](), dice("envelopes"), Counter[str]()
    assert door.deliver(good(JOB)) == "read"

    def deliver(kind: str, body: bytes) -> None:
        try:
            counts[door.deliver(body)] += 1
        except Exception as error:
            counts["wrong"] += 1
            wrong[f"{kind}: {type(error).__name__}: {str(error)[:150]}"] += 1

    for _ in range(times(2_000, 110_000)):
        deliver(*bad(JOB, chance))
    _generated(lambda body: deliver("generated", body))
    tell("envelopes through the decoding path of a worker", counts)
    assert not wrong, "\n".join(f"{n} × {what}" for what, n in wrong.most_common(20))
    assert not _untakable(place, door.moments)


def _generated(deliver: Callable[[bytes], None]) -> None:
    @settings(
        max_examples=times(200, 6_000),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(FIELDS | JSON)
    def generate(message: Any) -> None:
        deliver(orjson.dumps(message))

    generate()


def _untakable(place: Place, moments: set[str]) -> list[str]:
    """Moments that a worker would give to PostgreSQL, and PostgreSQL would not take."""
    found = []
    for moment in moments:
        try:
            place.db.execute("SELECT %s::timestamptz", (moment,))
        except (psycopg.DataError, ValueError) as error:
            found.append(f"{moment!r}: {error}")
    return found


def test_a_real_worker_survives_every_message_and_keeps_working(place: Place, rabbitmq: BlockingConnection) -> None:
    """Afterwards the queues are empty, the process is the same, and ordinary jobs are done once."""
    worker = place.worker(threads=4)
    pids, chance, counts = place.pids(), dice("published"), Counter[str]()
    # Some name a job that exists, of another workflow: it must not be touched.
    [waiting] = submit_many(None, "plain", [{}], due=datetime(2099, 1, 1, tzinfo=UTC))
    channel = rabbitmq.channel()
    declare(channel, [QUEUE, SWEEPS], "classic")
    channel.confirm_delivery()
    for n in range(times(150, 3_000)):
        kind, body = bad(chance.choice([JOB, uuid4(), waiting]), chance)
        channel.basic_publish("", SWEEPS if n % 10 == 0 else QUEUE, body, mandatory=True)
        counts[kind] += 1
    channel.close()
    place.until(lambda: not place.depth(QUEUE) and not place.depth(SWEEPS), times(60, 300), "empty queues")
    jobs = submit_many(None, "triple", [{} for _ in range(20)])
    ended = place.finished(*jobs)
    tell("messages published to a real worker", counts)
    assert {job["status"] for job in ended} == {"succeeded"}
    assert place.count("SELECT count(*) FROM ledger") == 3 * len(jobs)
    assert place.pids() == pids and all(map(lives, pids)) and worker.poll() is None
    assert place.job(waiting)["status"] == "pending" and not place.attempts(waiting)
    for queue in (QUEUE, SWEEPS):
        place.until(partial(_all_dead, place, queue), what="dead letters")


def _all_dead(place: Place, queue: str) -> bool:
    return place.depth(dead_letter_queue(queue)) > 0 and not place.depth(queue)
