"""What a phase function gets: the job it works on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import UUID

from pipeline.declare.errors import Cancelled, StaleClaim
from pipeline.declare.phase import idempotency_key

NOBODY = UUID(int=0)
Read = Callable[[str, Mapping[str, Any]], Sequence[Mapping[str, Any]]]
Keep = Callable[[str, Mapping[str, Any]], bool]


def _no_database(statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG001
    raise RuntimeError("this job has no database: pass read=… when you build a Job in a test")


def _no_checkpoints(statement: str, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG001
    raise RuntimeError("this job has no database: pass keep_rows=… when you build a Job in a test")


@dataclass
class Job:
    """One attempt at one phase. Build it yourself to test a handler without broker or database."""

    body: dict[str, Any]
    id: UUID = NOBODY
    workflow: str = "test"
    phase: str = "test"
    results: dict[str, Any] = field(default_factory=dict)
    attempt: int = 1
    fence: int = 1
    trace_id: str = "0" * 31 + "1"
    span_id: str = "0" * 15 + "1"
    temp_root: Path = Path(gettempdir()) / "pipeline-jobs" / "test"
    read_rows: Read = _no_database
    keep_rows: Keep = _no_checkpoints
    take_permit: Callable[[str, int], None] = lambda rate_limit, calls: None
    report: Callable[[int, int], bool] = lambda done, total: True
    lost: str | None = None
    span: str | None = None
    has_folder: bool = False

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this phase; give it to outside systems so that they can spot a repeat."""
        return idempotency_key(self.id, self.phase)

    @property
    def traceparent(self) -> str:
        """The W3C header for outgoing calls: this phase's own span, or the submitter's when tracing is off."""
        return self.span or f"00-{self.trace_id}-{self.span_id}-01"

    @property
    def tmp(self) -> Path:
        """A folder of this attempt's own, removed when it ends, also after a kill."""
        folder = self.temp_root / f"{self.id}-{self.fence}"
        folder.mkdir(parents=True, exist_ok=True)
        self.has_folder = True
        return folder

    def read(self, statement: str, **parameters: Any) -> Sequence[Mapping[str, Any]]:
        """Rows of a short query, in a transaction of its own."""
        return self.read_rows(statement, parameters)

    def progress(self, done: int, total: int) -> None:
        """Show how far the phase is. Raises when the attempt has lost its job, so that long work stops early."""
        self.check()
        if not self.report(done, total):
            raise StaleClaim(f"job {self.id}: fence {self.fence} is no longer held; the attempt stops here")

    def keep(self, statement: str, **parameters: Any) -> None:
        """Write a checkpoint now, in a transaction of its own. Raises, and writes nothing, when the job is lost."""
        self.check()
        if not self.keep_rows(statement, parameters):
            raise StaleClaim(f"job {self.id}: fence {self.fence} is no longer held; nothing was kept")

    def limit(self, rate_limit: str, calls: int = 1) -> None:
        """Return when so many calls may be made now under the rate limit's rate, which all workers share.

        Raises Snooze if that is further away: the job then comes back at the moment kept for it.
        """
        self.take_permit(rate_limit, calls)

    def check(self) -> None:
        """Raise if the job was cancelled or taken over. Call it in long loops that cannot be interrupted."""
        if self.lost == "cancelled":
            raise Cancelled(f"job {self.id} was cancelled")
        if self.lost is not None:
            raise StaleClaim(f"job {self.id}: fence {self.fence} is no longer held ({self.lost})")

    def clean_up(self) -> None:
        """Remove the attempt's folder, if it made one."""
        if self.has_folder:
            shutil.rmtree(self.temp_root / f"{self.id}-{self.fence}", ignore_errors=True)
