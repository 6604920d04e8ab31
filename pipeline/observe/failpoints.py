"""Named points between two I/O calls, where a test makes the process die or lose an answer.

``PIPELINE_FAILPOINTS="claim.committed=lose,kill"``: what happens the first time, the second time, and so on. Unset, a
point costs the look at an empty dictionary. ``phase.ended@orders.charge=kill`` is for one phase alone, and a
child process in which it runs dies instead of the worker. docs/reference/failpoints.md is made of this list, and
tests/crash/test_failpoints.py kills a worker at every one.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final, NamedTuple
from urllib.parse import quote

from pipeline.declare.errors import BadInput


class Point(NamedTuple):
    """What has been done, what has not, and who finds the job if the process dies here."""

    done: str
    not_done: str
    found_by: str


REDELIVERY = "RabbitMQ delivers the message again"
POINTS: Final[dict[str, Point]] = {
    "relay.admitted": Point(
        "the job is marked as sent",
        "its message is not published",
        "reclaim: what a dead sender left unconfirmed is sent anew",
    ),
    "relay.published": Point(
        "the message is published",
        "its confirm is not heard",
        "the message itself, or reclaim, which sends it anew; of two messages one has the job's number",
    ),
    "relay.refused": Point(
        "RabbitMQ did not confirm",
        "the job is not back at the gate",
        "reclaim: what a dead sender left unconfirmed is sent anew",
    ),
    "relay.woken": Point(
        "a commit woke the relay: of a submit, a signal, a child's end",
        "it has not looked for what can be sent",
        "the next leader of the relay, which looks before it sleeps",
    ),
    "message.received": Point("a worker has the message", "its job is not claimed", REDELIVERY),
    "claim.committed": Point(
        "the job runs",
        "its thread has not begun",
        f"{REDELIVERY}; it meets a running job whose holder's lock is free: takeover",
    ),
    "phase.ended": Point(
        "the phase has returned",
        "nothing is committed",
        f"{REDELIVERY}: takeover; the phase runs again, under a new fence",
    ),
    "step.ended": Point(
        "the function of a step has returned",
        "its result is not kept",
        f"{REDELIVERY}: takeover; the phase runs again, and this step with it",
    ),
    "step.committed": Point(
        "the result of a step is kept",
        "its phase has not heard of it",
        f"{REDELIVERY}: takeover; the phase runs again, and gets the result without the step",
    ),
    "complete.committed": Point(
        "the phase is completed; the job has ended, waits at the next gate or runs in the next phase",
        "its message is not acknowledged",
        f"{REDELIVERY}. A job that ended or waits: nothing to do. One that was carried on: takeover in its next phase",
    ),
    "children.written": Point(
        "children are submitted in the transaction that ends their parent's phase",
        "the phase is not completed, and nothing is committed",
        "PostgreSQL rolls back; as phase.ended. Children exist if and only if their parent waits for them",
    ),
    "write.executed": Point(
        "the writes of a shared transaction have run", "they are not committed", "PostgreSQL rolls back; as phase.ended"
    ),
    "write.committed": Point(
        "writes and completions are committed", "no thread has heard of it", "as complete.committed"
    ),
    "own_write.executed": Point(
        "a write in a transaction of its own has run", "it is not committed", "PostgreSQL rolls back; as phase.ended"
    ),
    "own_write.committed": Point("it is committed", "its thread has not heard of it", "as complete.committed"),
    "error.settled": Point(
        "a failed attempt is settled: the job waits for its retry, or has failed",
        "its message is not acknowledged",
        f"{REDELIVERY}; its number is void. Of a job that has failed: it is dead-lettered then",
    ),
    "takeover.committed": Point(
        "the job is taken over from a dead worker", "its thread has not begun", f"{REDELIVERY}: the next takeover"
    ),
    "give_back.committed": Point(
        "a busy worker's message is void, and its job at the gate again",
        "the message is not acknowledged",
        f"{REDELIVERY}; its number is void. The relay sends the job",
    ),
    "maintenance.woken": Point(
        "a child's end is committed, and its batch or its parent's row was held by another transaction",
        "nobody has counted it, or woken the parent",
        "the next leader of maintenance, which looks before it waits",
    ),
    "reclaim.committed": Point(
        "a dead worker's jobs are at the gate again",
        "the leader has told nobody",
        "the next leader of maintenance; the relay sends",
    ),
}

KILL, LOSE, PASS = "kill", "lose", "pass"
# Where somebody waits for an answer that can be lost.
ANSWERED: Final = frozenset(
    {
        "relay.published",
        "claim.committed",
        "step.committed",
        "complete.committed",
        "write.committed",
        "own_write.committed",
    }
)
# What is to happen the next time each point is reached.
armed: dict[str, list[str]] = {}


class AnswerLost(Exception):
    """The connection broke before the answer came. Where it is raised, it becomes the driver's own error."""


def arm(chosen: str) -> None:
    """``name=action,action name=action``. Raises BadInput for what does not exist."""
    for part in chosen.split():
        place, _, actions = part.partition("=")
        name, wanted = place.partition("@")[0], actions.split(",")
        known = {KILL, PASS, LOSE} if name in ANSWERED else {KILL, PASS}
        if name not in POINTS or not set(wanted) <= known:
            raise BadInput(
                f"PIPELINE_FAILPOINTS: {part!r} is not a point ({', '.join(POINTS)}) with =kill, =pass or, where an "
                "answer can be lost, =lose"
            )
        armed[place] = wanted


def step_place(queue: str, step: str) -> str:
    """Where ``step.ended`` is for one step alone; its name may have any signs."""
    return f"{queue}:{quote(step, safe='')}"


def reach(name: str, place: str = "") -> None:
    """Die, lose the answer, or nothing. Called only while something is armed."""
    action = take(name) or take(f"{name}@{place}")
    if action == KILL:
        die()
    if action == LOSE:
        raise AnswerLost(name)


def take(place: str) -> str | None:
    """What is to happen there this time, if anything is."""
    actions = armed.get(place)
    if not actions or (action := actions.pop(0)) == PASS:
        return None
    sys.stderr.write(f"failpoint {place}: {action}\n")
    sys.stderr.flush()
    return action


def die() -> None:
    """As if somebody had killed this process."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
