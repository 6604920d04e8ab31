"""Group commit: claims and completions of all threads of a process go to PostgreSQL in one transaction.

A batch is whatever gathered while the previous one was being committed, and what the threads that it answered hand
in right away. Threads wait for their claims, and for the completion of a job that they may continue with; other
completions are not waited for: the acknowledgement follows the commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

import psycopg

from pipeline.store.gateway.completion import Completed, Continued, Locked
from pipeline.store.group_statement import Ask, ClaimRow, Completion, GroupStatement

# Threads that were just answered mostly have a short phase, and are back with its end and their next claim before
# long. Without waiting for them, half of the threads would always miss the commit that is just beginning.
# They are waited for as long as that commit took, but not if it met an outage.
LONGEST = 0.01
# A completion whose row another transaction holds waits beside the others and is asked for again.
LOCKED_PAUSE = 0.2


class Committer:
    """A thread with a connection of its own. ``on_completed`` hears of every committed batch."""

    def __init__(
        self,
        dsn: str,
        worker_id: str,
        worker_no: int,
        on_completed: Callable[[list[tuple[Completion, Completed]]], None],
        on_refused: Callable[[Completion, Exception], None],
        *,
        thread: Callable[[str, Callable[[], None]], threading.Thread],
    ) -> None:
        self._statement = GroupStatement(dsn, worker_id, worker_no)
        self._on_completed = on_completed
        self._on_refused = on_refused
        self._asks: list[Ask] = []
        self._completions: list[Completion] = []
        self._locked: list[Completion] = []
        self._ask_locked_at = 0.0
        self._changed = threading.Condition()
        self._busy = False
        self._idle = False
        self._answered = 0
        self._gather_until = 0.0
        self._stopping = False
        self._flushing = False
        self._flush_until = 0.0
        self._thread = thread("pipeline-committer", self._run)

    def start(self) -> None:
        self._thread.start()

    def claim(self, ask: Ask) -> ClaimRow:
        """Claim, together with what the other threads ask for; waits for the commit."""
        with self._changed:
            self._asks.append(ask)
            self._wake()
        return ask.wait()

    def complete(self, completion: Completion) -> None:
        """Complete without waiting."""
        with self._changed:
            self._completions.append(completion)
            self._wake()

    def flush(self, timeout: float) -> bool:
        """Wait until everything handed in is committed. False if it was not in time, counted from the first call."""
        with self._changed:
            if not self._flushing:
                self._flush_until = monotonic() + timeout
            self._flushing = True
            return self._changed.wait_for(
                lambda: not (self._busy or self._asks or self._completions or self._locked),
                max(0.0, self._flush_until - monotonic()),
            )

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(5)

    def _wake(self) -> None:
        """Only when it has something to do: a wake-up costs as much as a row."""
        if self._idle or self._all_back():
            self._changed.notify()

    def _all_back(self) -> bool:
        return len(self._completions) >= self._answered or self._stopping or self._flushing

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                pause = max(0.0, self._ask_locked_at - monotonic()) if self._locked else None
                self._changed.wait_for(lambda: self._asks or self._completions or self._stopping, pause)
                self._idle = False
                if self._locked and monotonic() >= self._ask_locked_at:
                    self._completions, self._locked = self._completions + self._locked, []
                if self._stopping and not (self._asks or self._completions):
                    return
                if not (self._asks or self._completions):
                    continue
                self._changed.wait_for(self._all_back, max(0.0, self._gather_until - monotonic()))
                asks, self._asks = self._asks, []
                completions, self._completions = self._completions, []
                self._busy = True
            self._commit(asks, completions)
            with self._changed:
                self._busy = False
                if self._flushing:
                    self._changed.notify_all()

    def _commit(self, asks: list[Ask], completions: list[Completion]) -> None:
        started = monotonic()
        try:
            completed, answers = self._statement.execute(asks, completions)
        except psycopg.Error as error:
            if len(asks) + len(completions) > 1:
                self._one_by_one(asks, completions)
            elif asks:
                asks[0].resolve(error)
            else:
                self._on_refused(completions[0], error)
                completions[0].answer()
            return
        if completions:
            self._completed(list(zip(completions, completed, strict=True)))
        self._answered = sum(answer.verdict == "claimed" for answer in answers)
        self._answered += sum(isinstance(answer, Continued) for answer in completed)
        ended = monotonic()
        self._gather_until = ended + min(ended - started, LONGEST)
        for ask, answer in zip(asks, answers, strict=True):
            ask.resolve(answer)

    def _completed(self, batch: list[tuple[Completion, Completed]]) -> None:
        locked = [completion for completion, completed in batch if isinstance(completed, Locked)]
        if locked:
            self._locked += locked
            self._ask_locked_at = monotonic() + LOCKED_PAUSE
            batch = [pair for pair in batch if not isinstance(pair[1], Locked)]
        if batch:
            self._on_completed(batch)
        for completion in (*locked, *(completion for completion, _ in batch)):
            completion.answer()

    def _one_by_one(self, asks: list[Ask], completions: list[Completion]) -> None:
        """One bad row must not fail its neighbours."""
        for completion in completions:
            self._commit([], [completion])
        for ask in asks:
            self._commit([ask], [])
