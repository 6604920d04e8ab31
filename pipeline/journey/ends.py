"""Waiting for jobs: one thread and one connection of a process hear which jobs have ended, for all who wait there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic, sleep
from typing import Literal
from uuid import UUID

from pipeline import settings
from pipeline.declare.errors import database_is_unable
from pipeline.observe import logs
from pipeline.store.engine import Wire, connect
from pipeline.store.gateway import results
from pipeline.store.gateway.results import AwaitAnswer, JobStatus
from pipeline.store.waiter import Waiter

log = logs.get("pipeline.ends")

# Between two looks at jobs whose progress is watched.
EVERY = 1.0
# Between two looks at everything, for what nobody thought of. A thread for which nobody waits stays no longer.
BACKSTOP = 30.0
# Before a job is asked for again whose row another transaction holds: mostly the one that ends it.
SOON, LATER = 0.002, 1.0
# Before PostgreSQL is tried again.
RECONNECT = 0.3

# Whether the job is as it was waited for. None: it does not exist.
Enough = Callable[[JobStatus | None], bool]
# For the end; for any change, which is looked for once a second; or just for a look.
Kind = Literal["end", "change", "look"]


@dataclass(eq=False, slots=True)
class Wait:
    """Somebody waits for a job."""

    job: UUID
    kind: Kind
    enough: Enough
    answer: Future[JobStatus | None] = field(default_factory=Future)

    def tell(self, status: JobStatus | None) -> bool:
        """False if that is not enough: the wait goes on."""
        if self.enough(status) and self.answer.set_running_or_notify_cancel():
            self.answer.set_result(status)
        return self.answer.done()


class Ends:
    """Answers a wait as soon as the transaction that ends its job has committed; until then it costs nothing.

    While PostgreSQL is away everybody waits on; then all jobs that are waited for are looked at again. An error that
    time does not mend (no rights, no schema) is everybody's answer.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._waiter = Waiter()
        self._lock = threading.Lock()
        self._new: list[Wait] = []
        self._thread: threading.Thread | None = None
        # From here on the thread's own.
        self._waits: dict[UUID, list[Wait]] = {}
        self._requests = Requests()
        self._heard: set[UUID] = set()
        self._lost = self._watching = False
        self._next_look = self._backstop = 0.0

    def wait(self, job: UUID, kind: Kind, enough: Enough) -> Future[JobStatus | None]:
        """How the job is, once that is enough. Cancel it to wait no longer."""
        wait = Wait(job, kind, enough)
        with self._lock:
            self._new.append(wait)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pipeline-ends", daemon=True)
                self._thread.start()
        self._waiter.wake()
        return wait.answer

    def _run(self) -> None:
        while self._is_needed():
            try:
                with connect(self._dsn, "result") as connection:
                    self._serve(connection)
            except Exception as error:
                self._lose(error)

    def _is_needed(self) -> bool:
        """False if nobody waits: this thread is over then, and whoever waits next starts another."""
        with self._lock:
            self._forget_cancelled()
            self._new = [wait for wait in self._new if not wait.answer.cancelled()]
            needed = bool(self._new or self._waits)
            if not needed:
                self._thread = None
            return needed

    def _lose(self, error: Exception) -> None:
        if not database_is_unable(error):
            self._refuse(error)
        elif self._new or self._waits:
            if not self._lost:
                log.warning("lost PostgreSQL; waiting for results goes on", error=str(error).strip())
            self._lost = True
            sleep(RECONNECT)

    def _serve(self, connection: Wire) -> None:
        """Until nobody has waited for a while."""
        connection.add_notify_handler(lambda said: self._note(said.payload))
        results.listen(connection)
        self._lost = False
        # What ended before was not heard here.
        self._requests = Requests()
        self._meet(connection, list(self._waits))
        self._backstop = monotonic() + BACKSTOP
        while self._waits or monotonic() < self._backstop:
            self._take_new(connection)
            self._request(connection)
            self._hear(connection)
            self._look_again(connection)
            self._sleep(connection)

    def _take_new(self, connection: Wire) -> None:
        with self._lock:
            taken, self._new = self._new, []
        new = [wait for wait in taken if not wait.answer.cancelled()]
        for wait in new:
            self._waits.setdefault(wait.job, []).append(wait)
        self._watching = self._watching or any(wait.kind == "change" for wait in new)
        self._look(connection, {wait.job for wait in new if wait.kind == "look"})
        self._requests.add(wait.job for wait in new if wait.kind != "look")

    def _request(self, connection: Wire) -> None:
        """Ask to hear of the ends of these jobs; the end of some is no news."""
        if due := self._requests.due(monotonic()):
            answers = results.await_ends(connection, due)
            self._requests.answered(answers, monotonic())
            self._meet(connection, [job for job, answer in answers.items() if answer in ("ended", "unknown")])

    def _hear(self, connection: Wire) -> None:
        connection.pgconn.consume_input()
        self._gather(connection)
        heard, self._heard = self._heard, set()
        self._meet(connection, heard)

    def _gather(self, connection: Wire) -> bool:
        """Whether anything was heard; also what came right behind the last answer and is in libpq's buffer."""
        while (said := connection.pgconn.notifies()) is not None:
            self._note(said.extra.decode())
        return bool(self._heard)

    def _note(self, said: str) -> None:
        # Anybody in the database may say anything on the channel.
        with suppress(ValueError):
            self._heard.add(UUID(said))

    def _meet(self, connection: Wire, ended: Iterable[UUID]) -> None:
        """Look at jobs that have ended. One that was started again since is waited for anew."""
        self._requests.forget(ended)
        self._look(connection, ended)
        self._requests.add(job for job in ended if job in self._waits)

    def _look_again(self, connection: Wire) -> None:
        now = monotonic()
        if self._waits and now >= self._backstop:
            self._backstop = now + BACKSTOP
            self._forget_cancelled()
            self._requests.again(self._waits)
        if self._watching and now >= self._next_look:
            self._next_look = now + EVERY
            watched = [job for job, waits in self._waits.items() if any(wait.kind == "change" for wait in waits)]
            self._watching = bool(watched)
            self._look(connection, watched)

    def _look(self, connection: Wire, jobs: Iterable[UUID]) -> None:
        """All in one statement; whoever has seen enough of theirs is told."""
        wanted = [job for job in jobs if job in self._waits]
        if not wanted:
            return
        found = results.look(connection, wanted)
        for job in wanted:
            left = [wait for wait in self._waits[job] if not wait.tell(found.get(job))]
            self._keep(job, left)

    def _keep(self, job: UUID, waits: list[Wait]) -> None:
        if waits:
            self._waits[job] = waits
        else:
            del self._waits[job]

    def _sleep(self, connection: Wire) -> None:
        """Until somebody waits, something is heard, or it is time for a look."""
        if self._gather(connection):
            return
        until = min(self._backstop, self._requests.next(), self._next_look if self._watching else inf)
        self._waiter.wait(connection, until - monotonic())

    def _forget_cancelled(self) -> None:
        for job, waits in list(self._waits.items()):
            self._keep(job, [wait for wait in waits if not wait.answer.cancelled()])
        self._requests.forget(self._requests.noted - self._waits.keys())

    def _refuse(self, error: Exception) -> None:
        with self._lock:
            waits = [*self._new, *(wait for waits in self._waits.values() for wait in waits)]
            self._new = []
            self._waits = {}
        for wait in waits:
            if wait.answer.set_running_or_notify_cancel():
                wait.answer.set_exception(error)


class Requests:
    """The jobs whose ends are to be notified: those that PostgreSQL has noted, and when to ask for the others."""

    def __init__(self) -> None:
        self.noted: set[UUID] = set()
        # When to ask, and how long to wait before the next time.
        self._open: dict[UUID, tuple[float, float]] = {}

    def add(self, jobs: Iterable[UUID]) -> None:
        """Ask at once, unless that was done."""
        for job in jobs:
            if job not in self.noted:
                self._open.setdefault(job, (0.0, SOON))

    def again(self, jobs: Iterable[UUID]) -> None:
        """Ask at once, whatever was answered before."""
        for job in jobs:
            self._open[job] = (0.0, SOON)

    def due(self, now: float) -> list[UUID]:
        return [job for job, (at, _) in self._open.items() if at <= now]

    def answered(self, answers: Mapping[UUID, AwaitAnswer], now: float) -> None:
        for job, answer in answers.items():
            if answer == "locked":
                _, pause = self._open[job]
                self._open[job] = (now + pause, min(2 * pause, LATER))
                continue
            del self._open[job]
            if answer == "noted":
                self.noted.add(job)

    def next(self) -> float:
        """When to ask next."""
        return min((at for at, _ in self._open.values()), default=inf)

    def forget(self, jobs: Iterable[UUID]) -> None:
        for job in jobs:
            self.noted.discard(job)
            self._open.pop(job, None)


_known: dict[tuple[int, str], Ends] = {}


# Answers in place of PostgreSQL while an application's test runs without one (see pipeline.testing.in_memory).
stand_in: Ends | None = None


def ends() -> Ends:
    """This process's; a forked child gets its own."""
    if stand_in is not None:
        return stand_in
    key = (os.getpid(), settings.get().session_dsn)
    # Not lru_cache: of two threads that come first, each would get its own.
    return _known.get(key) or _known.setdefault(key, Ends(key[1]))
