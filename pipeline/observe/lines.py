"""Whose line it is: what is logged while an attempt runs names the attempt, and its last lines are kept with it."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.observe.tracebacks import bounded

if TYPE_CHECKING:
    from pipeline.journey.attempt import Attempt

# Of an attempt's lines, and of one line.
MOST, LONGEST_LINE, LONGEST = 100, 2000, 8192
WHOSE = ("job", "phase", "attempt", "fence", "worker", "trace")
# What says whose line it is, and what structlog leaves behind.
UNSAID = {*WHOSE, "exc_info", "stack_info"}
# The attempt whose lines these are (pipeline.observe.instruments.in_logs).
running: ContextVar[Attempt | None] = ContextVar("pipeline_attempt", default=None)
# The worker that this process belongs to.
_worker: dict[str, str] = {}


def called(worker: str) -> None:
    """The worker that this process is, or is a child of."""
    _worker["worker"] = worker


@dataclass(slots=True)
class Said:
    """What an attempt says of itself: its last lines, and the traceback that a child process made of its error."""

    lines: deque[str] | None = None
    traceback: str | None = None


def whose(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """For structlog: adds whose line it is, unless it says so itself."""
    attempt = running.get()
    if attempt is not None:
        named = (str(attempt.job_id), attempt.spec.queue, attempt.attempts + 1, attempt.fence)
        known = {**dict(zip(WHOSE, named, strict=False)), **_worker, "trace": attempt.trace_id}
        for name, value in known.items():
            event.setdefault(name, value)
    return event


def keep(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """For structlog: the line is one of the running attempt's last."""
    attempt = running.get()
    if attempt is not None:
        add(attempt, _line(event))
    return event


def add(attempt: Attempt, line: str) -> None:
    """One more line of the attempt's; the oldest makes way."""
    if attempt.said.lines is None:
        attempt.said.lines = deque(maxlen=MOST)
    attempt.said.lines.append(line[:LONGEST_LINE])


def kept(attempt: Attempt) -> str | None:
    """The attempt's last lines, if it has any: as many as fit."""
    if not attempt.said.lines:
        return None
    taken: list[str] = []
    size = 0
    for line in reversed(list(attempt.said.lines)):
        if (size := size + len(line.encode("utf-8", "replace")) + 1) > LONGEST:
            break
        taken.append(line)
    return bounded("\n".join(reversed(taken)), LONGEST) or None


def _line(event: MutableMapping[str, Any]) -> str:
    rest = {name: value for name, value in event.items() if name not in UNSAID and not name.startswith("_")}
    at, level = str(rest.pop("timestamp", ""))[11:23], rest.pop("level", "")
    said, exception = rest.pop("event", ""), rest.pop("exception", None)
    fields = "".join(f" {name}={value}" for name, value in rest.items())
    return f"{at} {level:<8}{said}{fields}" + (f"\n{exception}" if exception else "")


class Printed(io.TextIOBase):
    """A stream that passes everything on; its lines are the running attempt's, too."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As the stream does."""
        attempt = running.get()
        if attempt is not None:
            *lines, self._begun = (self._begun + text).split("\n")
            self._begun = self._begun[-LONGEST_LINE:]
            for line in lines:
                add(attempt, line)
        return int(self._stream.write(text))

    def flush(self) -> None:
        """As the stream does."""
        self._stream.flush()
