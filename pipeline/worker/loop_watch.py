"""Whether the event loop still turns. A coroutine that blocks it is named; the others' time does not run meanwhile."""

from __future__ import annotations

import sys
import threading
from time import monotonic
from traceback import extract_stack
from typing import TYPE_CHECKING

from pipeline.observe import logs
from pipeline.observe.instruments import count, observe_lag
from pipeline.worker.essential import essential_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.broker.inbound import Delivery
    from pipeline.journey.attempt import Held
    from pipeline.worker.event_loop import Runner

log = logs.get("pipeline.worker")

EVERY = 0.25
# A loop that has not turned for so long is blocked.
BLOCKED = 1.0


class Beat:
    """Sent to the loop, and answered when it turns."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.sent = monotonic()
        self.answered: float | None = None
        runner.post(self._answer)

    def _answer(self) -> None:
        self.answered = monotonic()


class LoopWatch:
    """Sends a beat to the loop several times a second, while there are attempts on it."""

    def __init__(self, runner: Callable[[], Runner], held: Held) -> None:
        self._runner = runner
        self._held = held
        self._beat: Beat | None = None
        self._named = False
        self._stopping = threading.Event()
        self._thread = essential_thread("pipeline-loop-watch", self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def is_blocked(self, runner: Runner) -> bool:
        """Whether this loop does not turn."""
        beat = self._beat
        return beat is not None and beat.runner is runner and beat.answered is None and _age(beat) >= BLOCKED

    def _run(self) -> None:
        while not self._stopping.wait(EVERY):
            runner, beat = self._runner(), self._beat
            if beat is None or beat.runner is not runner:
                self._beat, self._named = (Beat(runner) if runner.tasks else None), False
            elif beat.answered is not None:
                observe_lag(beat.answered - beat.sent)
                self._beat, self._named = (Beat(runner) if runner.tasks else None), False
            elif _age(beat) >= BLOCKED:
                self._blocked(runner, _age(beat))

    def _blocked(self, runner: Runner, seconds: float) -> None:
        culprit = runner.running()
        since = EVERY if self._named else seconds
        if not self._named:
            self._named = True
            count("loop.blocked")
            log.error(
                "a coroutine blocks the event loop: all async phases of this process wait for it",
                **_name(culprit),
                seconds=round(seconds, 1),
                at=_place(runner),
            )
        blocking = culprit.attempt if culprit is not None else None
        for attempt in self._held.all():
            if attempt.runner is runner and attempt is not blocking and attempt.reason is None:
                attempt.deadline += since


def _age(beat: Beat) -> float:
    return monotonic() - beat.sent


def _name(delivery: Delivery | None) -> dict[str, str]:
    if delivery is None:
        return {}
    attempt = delivery.attempt
    return {"phase": delivery.queue, **({"job": str(attempt.job_id)} if attempt is not None else {})}


def _place(runner: Runner) -> str:
    """The line that the loop's thread is at."""
    frame = sys._current_frames().get(runner.thread.ident or 0)
    if frame is None:
        return "?"
    last = extract_stack(frame, limit=1)[-1]
    return f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} in {last.name}"
