"""Workflows that the tests run: each does what its body says. A real worker imports this module."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import time
from pathlib import Path

from sqlalchemy import Connection, text

from pipeline import Backoff, Done, Job, Permanent, Transient, Wait, Workflow
from pipeline.rules.phase import Throttle

QUICK = Backoff(schedule=(0.05,), jitter=0)


def record(job: Job) -> None:
    """Note an execution where no transaction can take it back."""
    path = Path(os.environ["TEST_RECORD"])
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{job.id} {job.phase} {job.fence} {os.getpid()} {time.time()}\n".encode())
    os.close(handle)


def ledger(job: Job) -> Done:
    """The phase's database effect: exactly one row for each phase of each job, or the engine is wrong."""

    def write(connection: Connection) -> None:
        connection.execute(
            text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)"),
            {"job": job.id, "phase": job.phase, "fence": job.fence},
        )

    return Done(result={"fence": job.fence}, write=write)


def work(job: Job) -> Done:
    record(job)
    time.sleep(float(job.body.get("seconds", 0)))
    return ledger(job)


triple = Workflow("triple")
first = triple.phase("first", pool=None, backoff=QUICK)(work)
second = triple.phase("second", pool=None, backoff=QUICK)(work)
third = triple.phase("third", pool=None, backoff=QUICK)(work)

plain = Workflow("plain")


@plain.phase("alpha", pool=None)
def alpha(job: Job) -> dict[str, int]:
    return {"n": 1}


@plain.phase("beta", pool=None)
def beta(job: Job) -> None:
    assert job.results == {"alpha": {"n": 1}}


@plain.phase("gamma", pool=None)
def gamma(job: Job) -> None:
    return None


single = Workflow("single")


@single.phase("act", pool=None, backoff=QUICK, time_limit=30)
def act(job: Job) -> object:
    """Do what the body asks for."""
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


caged = Workflow("caged")


@caged.phase("act", isolated=True, memory_limit=2 << 30, time_limit=90, pool=None, backoff=QUICK)
def caged_act(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


hasty = Workflow("hasty")


@hasty.phase("act", isolated=True, time_limit=3, pool=None, max_crashes=1)
def hasty_act(job: Job) -> object:
    return ACTIONS[job.body["do"]](job)


pooled = Workflow("pooled")


@pooled.phase("narrow", pool=3)
def narrow(job: Job) -> Done:
    record(job)
    time.sleep(float(job.body.get("seconds", 0)))
    return ledger(job)


paced = Workflow("paced")


@paced.phase("slowly", pool=None, throttle=Throttle(count=2, seconds=0.5))
def slowly(job: Job) -> None:
    record(job)


small = Workflow("small")


@small.phase("queue", pool=None, queue_limit=5)
def small_queue(job: Job) -> None:
    record(job)


pair = Workflow("pair")


@pair.phase("first", pool=None)
def pair_first(job: Job) -> Done:
    record(job)
    return ledger(job)


@pair.phase("act", pool=None, backoff=QUICK, time_limit=30)
def pair_act(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


strict = Workflow("strict")
strict_first = strict.phase("first", pool=None)(pair_first.work)
strict_act = strict.phase("act", pool=None, max_attempts=1)(pair_act.work)


# With the options that a user gets who gives none, and a time limit that a test can wait for.
everyday = Workflow("everyday")


@everyday.phase
def usual(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


brief = Workflow("brief")


@brief.phase(time_limit=2, pool=4)
def two_seconds(job: Job) -> object:
    record(job)
    return ACTIONS[job.body.get("do", "ledger")](job)


def _blocked(job: Job) -> Done:
    """In a call that nothing can interrupt, in the first attempt."""
    if job.fence == 1:
        BLOCKS[job.body.get("in", "sleep")](3600)
    return ledger(job)


def _blocked_write(job: Job) -> Done:
    """As above, inside the phase's own transaction: in Python, or waiting for a lock in PostgreSQL."""

    def write(connection: Connection) -> None:
        connection.execute(
            text("INSERT INTO ledger (job_id, phase, fence) VALUES (:job, :phase, :fence)"),
            {"job": job.id, "phase": job.phase, "fence": job.fence},
        )
        if job.fence == 1 and job.body["in"] == "lock":
            connection.execute(text("UPDATE rows_to_lock SET n = n + 1 WHERE id = 1"))
        elif job.fence == 1:
            time.sleep(3600)

    return Done(write=write)


def _in_a_socket(seconds: float) -> None:
    here, _there = socket.socketpair()
    here.recv(1)


def _in_c(seconds: float) -> None:
    ctypes.CDLL(None).sleep(int(seconds))


BLOCKS = {"sleep": time.sleep, "socket": _in_a_socket, "c": _in_c}


def _fail(job: Job) -> None:
    raise Transient("the outside world is away")


def _flaky(job: Job) -> Done:
    if job.attempt < int(job.body.get("until", 2)):
        raise RuntimeError(f"try {job.attempt}")
    return ledger(job)


def _permanent(job: Job) -> None:
    raise Permanent("the document does not exist")


def _wait(job: Job) -> Done:
    if job.fence <= int(job.body.get("times", 2)):
        raise Wait(float(job.body.get("seconds", 0.05)), "rate_limit")
    return ledger(job)


def _kill(job: Job) -> Done:
    if job.fence <= int(job.body.get("times", 99)):
        os.kill(os.getpid(), signal.SIGKILL)
    return ledger(job)


def _segfault(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hog(job: Job) -> Done:
    hog = bytearray(8 << 30)
    return Done(result={"n": len(hog)})


def _sleep(job: Job) -> Done:
    """``seconds`` in the first attempt, ``later`` in those that follow."""
    wish = job.body.get("seconds", 1) if job.fence == 1 else job.body.get("later", 0)
    deadline = time.monotonic() + float(wish)
    while time.monotonic() < deadline:
        time.sleep(0.01)
    return ledger(job)


def _rest(job: Job) -> Done:
    """``seconds`` in the attempt with the fence ``at``."""
    if job.fence == int(job.body["at"]):
        time.sleep(float(job.body["seconds"]))
    return ledger(job)


def _temp(job: Job) -> Done:
    (job.tmp / "page.png").write_bytes(b"x" * 1000)
    return _sleep(job)


def _bad_write(job: Job) -> Done:
    def write(connection: Connection) -> None:
        connection.execute(text("INSERT INTO ledger (job_id, phase, fence) VALUES (NULL, 'x', 1)"))

    return Done(write=write)


def _deadlock(job: Job) -> Done:
    first_row, second_row = job.body["rows"]

    def write(connection: Connection) -> None:
        connection.execute(text("UPDATE rows_to_lock SET n = n + 1 WHERE id = :id"), {"id": first_row})
        time.sleep(0.3)
        connection.execute(text("UPDATE rows_to_lock SET n = n + 1 WHERE id = :id"), {"id": second_row})

    return Done(write=write)


def _big_result(job: Job) -> dict[str, str]:
    return {"text": "x" * 70_000}


ACTIONS = {
    "ledger": ledger, "nothing": lambda job: None, "fail": _fail, "flaky": _flaky, "permanent": _permanent,
    "wait": _wait, "kill": _kill, "segfault": _segfault, "hog": _hog, "sleep": _sleep, "rest": _rest, "temp": _temp,
    "blocked": _blocked, "blocked_write": _blocked_write, "bad_write": _bad_write, "deadlock": _deadlock, "big_result": _big_result,
}  # fmt: skip
