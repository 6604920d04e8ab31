"""What a child process says while it works for a job, so that it is there when the child is not."""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress
from pathlib import Path
from traceback import FrameSummary
from typing import BinaryIO

from pipeline.observe import tracebacks
from pipeline.observe.lines import LONGEST, MOST

# What a child's file may hold before it is begun anew.
FULL = 1 << 16
# What Python's faulthandler writes on the way out, into the socket to the worker.
LAST_WORDS = "Fatal Python error: "
FRAME = re.compile(r'\s*File "(.+)", line (\d+) in (.+)')


class Tail(deque[str]):
    """A job's last lines, in memory and, from the first one on, in a file that outlives the process."""

    def __init__(self, path: str) -> None:
        super().__init__(maxlen=MOST)
        self._path = Path(path)
        self._file: BinaryIO | None = None

    def append(self, line: str) -> None:
        """On a full disk the line is kept in memory alone."""
        super().append(line)
        with suppress(OSError):
            if self._file is None:
                self._file = self._path.open("wb", buffering=0)
            if self._file.tell() > FULL:
                self._file.seek(0)
                self._file.truncate()
                line = "\n".join(self)
            self._file.write(line.encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        """The worker has heard it: nothing is left behind."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
                self._path.unlink()


def left_by(path: str) -> deque[str] | None:
    """The last lines of a child that died, which are removed."""
    try:
        said = Path(path).read_bytes()
        Path(path).unlink()
    except OSError:
        return None
    return deque(said[-2 * LONGEST :].decode(errors="replace").splitlines(), maxlen=MOST)


def last_words(said: list[str]) -> tuple[str, str | None] | None:
    """What faulthandler wrote, as a traceback, and the team's line that is nearest to the fault."""
    begin = next((n for n, line in enumerate(said) if line.startswith(LAST_WORDS)), None)
    if begin is None:
        return None
    found = [FRAME.fullmatch(line) for line in said[begin:]]
    frames = [FrameSummary(frame[1], int(frame[2]), frame[3]) for frame in reversed(found) if frame]
    text = tracebacks.bounded(tracebacks.told(frames, said[begin]))
    return text, tracebacks.nearest(frames)
