"""What the tests' phases do, by name: a job's body says which."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, text

from pipeline import Done, Job, Permanent, Snooze, Transient


def record(job: Job[Any]) -> None:
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
        raise Snooze(float(job.body.get("seconds", 0.05)), "rate_limit")
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


def wait_until_told(job: Job) -> None:
    """Until the file is there that the test names, if it names one: however slow anybody is, both see the job running."""
    while "file" in job.body and not Path(job.body["file"]).exists():
        time.sleep(0.02)


def _until_told(job: Job) -> Done:
    wait_until_told(job)
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


def _own_write(job: Job) -> Done:
    """A write that shares its transaction with nobody."""

    def write(connection: Connection) -> None:
        connection.execute(text("SET LOCAL statement_timeout = '20s'"))
        ledger(job).execute(connection)

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


def _say() -> None:
    logging.getLogger("shop").warning("plain %s", "words")
    structlog.get_logger("shop").warning("structured words", colour="red")
    print("printed words")


def speak(job: Job) -> Done:
    """Says something in each way, and fails until a try that succeeds."""
    _say()
    return told(job)


def told(job: Job) -> Done:
    if job.attempt < int(job.body["until"]):
        raise ValueError(f"no price, try {job.attempt}")
    return ledger(job)


def _speak_and_die(job: Job) -> None:
    _say()
    os.kill(os.getpid(), signal.SIGSEGV)


ACTIONS = {
    "speak": speak,
    "speak-and-die": _speak_and_die,
    "ledger": ledger,
    "nothing": lambda job: None,
    "own_write": _own_write,
    "fail": _fail,
    "flaky": _flaky,
    "permanent": _permanent,
    "wait": _wait,
    "kill": _kill,
    "segfault": _segfault,
    "hog": _hog,
    "sleep": _sleep,
    "rest": _rest,
    "until_told": _until_told,
    "temp": _temp,
    "blocked": _blocked,
    "blocked_write": _blocked_write,
    "bad_write": _bad_write,
    "deadlock": _deadlock,
    "big_result": _big_result,
}
