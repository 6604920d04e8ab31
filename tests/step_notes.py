"""What steps noted while they ran (see tests/step_workflows.py), in the order in which it happened."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple
from uuid import UUID

from tests.place import Place


class Note(NamedTuple):
    """A call of a step (``what`` is step, ``value`` its fence), or what an attempt got from it."""

    job: UUID
    what: str
    name: str
    value: int
    pid: int


def notes(place: Place) -> list[Note]:
    path = place.folder / "steps"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [Note(UUID(job), what, name, int(value), int(pid)) for job, what, name, value, pid in lines]


def calls(place: Place, job: UUID) -> Counter[str]:
    """How often each step of the job was called."""
    return Counter(note.name for note in notes(place) if note.job == job and note.what == "step")
