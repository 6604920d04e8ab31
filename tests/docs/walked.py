"""A workflow of one phase with default options, in a worker that writes down which functions of the engine it calls."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pipeline
from pipeline import Job, Workflow

ENGINE = str(Path(pipeline.__file__).parent) + "/"
RECORD = Path(os.environ["WALK_RECORD"])

walked = Workflow("walked")


@walked.phase
def step(job: Job) -> dict[str, Any]:
    return {"n": job.body["n"] + 1}


_seen: dict[str, None] = {}


def _called(frame: FrameType, event: str, _: Any) -> None:
    if event == "call" and frame.f_code.co_filename.startswith(ENGINE):
        _seen[f"{frame.f_code.co_filename[len(ENGINE) :]} {frame.f_code.co_qualname}"] = None


def _write(*_: Any) -> None:
    """Write down what was called since the last time, in the order of the first calls."""
    called = list(_seen)
    _seen.clear()
    RECORD.with_suffix(".new").write_text("\n".join(called))
    RECORD.with_suffix(".new").replace(RECORD)


if "dramatiq" in sys.argv[0]:
    signal.signal(signal.SIGUSR2, _write)
    threading.setprofile(_called)
