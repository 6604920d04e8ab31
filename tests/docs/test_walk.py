"""docs/walk.md is the way of a real job with default options: the same files, and the journey in the same order."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from pipeline import submit
from tests.place import ROOT, Place

WALK = (ROOT / "docs/walk.md").read_text(encoding="utf-8")
STOP = re.compile(r"^(\d+)\. \[`([\w/.]+)`\]\(\.\./([\w/.]+)\) (.+?) — ", re.MULTILINE)
STOPS = STOP.findall(WALK)
PATHS = [path for _, path, _, _ in STOPS]
# One after the other for one job, whatever the other threads do meanwhile.
SPINE = ("relay", "message", "attempt")
MOST_FILES = 14


def test_the_stops_are_numbered_in_order_and_every_item_is_one() -> None:
    """A line that the pattern does not know would not be checked."""
    items = re.findall(r"^\d+\. ", WALK, re.MULTILINE)
    assert [int(number) for number, *_ in STOPS] == list(range(1, len(items) + 1))


def test_each_file_exists_and_is_passed_once() -> None:
    """The link goes where its text says."""
    assert [target for _, _, target, _ in STOPS] == PATHS
    assert len(set(PATHS)) == len(PATHS)
    assert not [path for path in PATHS if not (ROOT / path).is_file()]


def test_each_function_that_is_named_is_defined_in_its_file() -> None:
    """Python's ``def`` and ``class``, PostgreSQL's ``FUNCTION``."""
    for _, path, _, names in STOPS:
        text = (ROOT / path).read_text(encoding="utf-8")
        defined = set(re.findall(r"(?:\bdef|\bclass|\bFUNCTION(?: pipeline\.)?) ?(\w+)", text))
        named = set(re.findall(r"`(\w+)`", names))
        assert named and named <= defined, f"{path}: {named - defined}"


class Recorder:
    """A worker that writes down which functions of the engine it has called since it was asked the last time."""

    def __init__(self, place: Place, record: Path) -> None:
        self._place = place
        self._record = record
        place.worker(threads=2, PIPELINE_WORKFLOWS="tests.docs.walked", WALK_RECORD=str(record))
        [self._pid] = place.pids()

    def called(self) -> list[str]:
        self._record.unlink(missing_ok=True)
        os.kill(self._pid, signal.SIGUSR2)
        self._place.until(self._record.exists, 20, "the record")
        return self._record.read_text().split("\n")


@pytest.fixture
def recorder(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    record = tmp_path / "walk"
    monkeypatch.setenv("WALK_RECORD", str(record))
    return Recorder(place, record)


def test_a_real_job_passes_these_files_and_no_others(place: Place, recorder: Recorder) -> None:
    """What an idle worker calls anyway (heartbeat, leaders) is left out. The SQL files are named by hand."""
    place.finished(submit(None, "walked", {"n": 0}))
    idle: set[str] = set()
    recorder.called()
    for _ in range(3):  # the heartbeat of this test is a second, the report's three
        time.sleep(1.5)
        idle |= set(recorder.called())
    place.finished(submit(None, "walked", {"n": 1}))
    place.until(lambda: place.depth("walked.step") == 0, 10, "the acknowledgement")
    trace = [call for call in recorder.called() if call not in idle]
    files = list(dict.fromkeys(f"pipeline/{call.split()[0]}" for call in trace))
    walked = [path for path in PATHS if path.endswith(".py") and path != "pipeline/journey/submit.py"]
    print(
        f"\none phase of one job passes {len(PATHS)} files of the engine: {len(walked) + 1} Python, "
        f"{len(PATHS) - len(walked) - 1} SQL"
    )
    assert set(files) == set(walked)
    assert len(PATHS) <= MOST_FILES
    spine = [f"pipeline/journey/{name}.py" for name in SPINE]
    assert [path for path in files if path in spine] == spine == [path for path in walked if path in spine]
