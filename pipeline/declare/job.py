"""What a phase function gets and gives: the job, and what travels with it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Union
from uuid import UUID

import orjson

from pipeline.declare.errors import Cancelled, Misuse, StaleClaim
from pipeline.declare.phase import idempotency_key
from pipeline.declare.waited import DONE, LaterRows, Rows, Then, Waited

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_UUID


def encode(value: Mapping[str, Any]) -> bytes:
    """The JSON of a body or result. Raises ValueError with a sentence about what is not valid JSON."""
    try:
        encoded = orjson.dumps(dict(value), option=OPTIONS)
    except TypeError as error:
        raise ValueError(str(error)) from None
    # orjson writes null for them; nearly all values have none, and are not looked through.
    if b"null" in encoded and _has_no_number(value):
        raise ValueError("NaN and Infinity are not valid JSON")
    return encoded


def _has_no_number(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(_has_no_number(one) for one in value.values())
    return isinstance(value, list | tuple) and any(_has_no_number(one) for one in value)


def decode(data: bytes | str) -> Any:
    """JSON as it can be passed on: PostgreSQL keeps numbers of any size, and says 1e20 in full.

    What has no room in 64 bits comes back as a float, and what is too large for that as its digits.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data, parse_int=_number)


def _number(digits: str) -> int | float | str:
    if math.isinf(size := float(digits)):
        return digits
    return int(digits) if abs(size) < 2**63 else size


# An async function gets what it can await: ``execute``, ``scalar`` and ``run_sync`` of a connection.
Write = Callable[["Connection"], object] | Callable[[Any], Awaitable[object]]
Values = Mapping[str, Any] | Sequence[Mapping[str, Any]]
# Alone, or with its values.
Statement = Union["Executable", tuple["Executable", Values]]


@dataclass(frozen=True)
class Done:
    """Success. ``result`` is small and goes to later phases; ``write`` runs in the transaction that ends the phase.

    ``write`` is a list of statements, or a function that gets an SQLAlchemy connection and must only write. What it
    does commits together with the job's transition and the hand-over to the next phase, or not at all. Other jobs'
    writes share the transaction while they are short. A function may be called twice; one call counts.
    """

    result: Mapping[str, Any] | None = None
    write: Write | Sequence[Statement] | None = None

    def __post_init__(self) -> None:
        if self.write is not None and not callable(self.write) and not isinstance(self.write, list | tuple):
            raise Misuse(f"Done(write=…) takes a function or a list of statements, not {type(self.write).__name__}")

    def execute(self, connection: Connection) -> None:
        """What the engine does with ``write``, for tests of a phase."""
        if callable(self.write):
            self.write(connection)
            return
        for one in self.write or ():
            statement, values = one if isinstance(one, tuple) else (one, None)
            connection.execute(statement, values)


def as_done(value: object) -> Done:
    """What a phase function returned, as a ``Done``: nothing, a mapping, a writing function, or a Done itself."""
    if value is None:
        return Done()
    if isinstance(value, Done):
        return value
    if isinstance(value, Mapping):
        return Done(result=value)
    if callable(value):
        return Done(write=value)
    raise Misuse(
        f"a phase returns None, a dict, a function that writes, or Done(...); this one returned {type(value).__name__}"
    )


NOBODY = UUID(int=0)


class Results(dict[str, Any]):
    """What earlier phases returned, by the phase's name or by its function's: ``check-stock`` or ``check_stock``."""

    def __missing__(self, name: str) -> Any:
        dashed = name.replace("_", "-")
        if dashed == name or dashed not in self:
            raise KeyError(f"no earlier phase {name!r} has returned a result; there are: {', '.join(self) or 'none'}")
        return self[dashed]

    def get(self, name: str, default: Any = None) -> Any:
        """The result, or ``default`` if there is none."""
        try:
            return self[name]
        except KeyError:
            return default


class Services:
    """What a job reaches outside of its function. A test brings its own, see ``pipeline.testing.FakeServices``."""

    @cached_property
    def temp_root(self) -> Path:
        """Where the folders of attempts are."""
        return Path(gettempdir()) / "pipeline-jobs" / "test"

    def read(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | LaterRows:
        """Rows of a short query."""
        raise RuntimeError(
            "this job has no database: pass services=FakeServices(read=…) when you build a Job in a test"
        )

    def keep(self, statement: str, parameters: Mapping[str, Any]) -> bool | Awaitable[bool]:
        """Write a checkpoint; False when the attempt no longer holds its job."""
        raise RuntimeError(
            "this job has no database: pass services=FakeServices(keep=…) when you build a Job in a test"
        )

    def report(self, done: int, total: int) -> bool | Awaitable[bool]:
        """Show progress; False when the attempt no longer holds its job."""
        return True

    def take_permit(self, rate_limit: str, calls: int) -> Awaitable[None] | None:
        """Wait for the rate limit, or raise Snooze."""
        return None


@dataclass
class Job:
    """One attempt at one phase. Build it yourself to test a phase without broker or database: ``Job({"url": …})``.

    In an ``async def`` phase await what waits: ``rows = await job.read(…)``, ``await job.keep(…)``,
    ``await job.progress(…)``, ``await job.limit(…)``.
    """

    body: dict[str, Any]
    id: UUID = NOBODY
    workflow: str = "test"
    phase: str = "test"
    results: dict[str, Any] = field(default_factory=Results)
    attempt: int = 1
    fence: int = 1
    trace_id: str = "0" * 31 + "1"
    span_id: str = "0" * 15 + "1"
    services: Services = field(default_factory=Services, repr=False)
    lost: str | None = field(default=None, init=False, repr=False)
    span: str | None = field(default=None, init=False, repr=False)
    has_folder: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self.results = Results(self.results)

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
        folder = self.services.temp_root / f"{self.id}-{self.fence}"
        folder.mkdir(parents=True, exist_ok=True)
        self.has_folder = True
        return folder

    def read(self, statement: str, **parameters: Any) -> Rows:
        """Rows of a short query, in a transaction of its own."""
        rows = self.services.read(statement, parameters)
        return rows if isinstance(rows, Rows) else Rows(rows)

    def progress(self, done: int, total: int) -> Waited:
        """Show how far the phase is. Raises when the attempt has lost its job, so that long work stops early."""
        self.check()
        return self._held(self.services.report(done, total), "the attempt stops here")

    def keep(self, statement: str, **parameters: Any) -> Waited:
        """Write a checkpoint now, in a transaction of its own. Raises, and writes nothing, when the job is lost."""
        self.check()
        return self._held(self.services.keep(statement, parameters), "nothing was kept")

    def limit(self, rate_limit: str, calls: int = 1) -> Waited:
        """Return when so many calls may be made now under the rate limit's rate, which all workers share.

        Raises Snooze if that is further away: the job then comes back at the moment kept for it.
        """
        permit = self.services.take_permit(rate_limit, calls)
        return DONE if permit is None else Then(permit)

    def _held(self, held: bool | Awaitable[bool], consequence: str) -> Waited:
        """Raise unless the attempt still holds its job: now, or once that is known."""

        def check(answer: bool) -> None:
            if not answer:
                raise StaleClaim(f"job {self.id}: fence {self.fence} is no longer held; {consequence}")

        if isinstance(held, bool):
            check(held)
            return DONE
        return Then(held, check)

    def check(self) -> None:
        """Raise if the job was cancelled or taken over. Call it in long loops that cannot be interrupted."""
        if self.lost == "cancelled":
            raise Cancelled(f"job {self.id} was cancelled")
        if self.lost is not None:
            raise StaleClaim(f"job {self.id}: fence {self.fence} is no longer held ({self.lost})")

    def clean_up(self) -> None:
        """Remove the attempt's folder, if it made one."""
        if self.has_folder:
            shutil.rmtree(self.services.temp_root / f"{self.id}-{self.fence}", ignore_errors=True)
