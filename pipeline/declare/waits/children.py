"""The ends of children, as a later phase of the job that waited for them takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, cast, overload
from uuid import UUID

from typing_extensions import TypeVar

from pipeline.declare.codec import DoesNotFit
from pipeline.declare.errors import Misuse, Permanent
from pipeline.declare.job import PLAIN

if TYPE_CHECKING:
    from pipeline.declare.codec import Codec
    from pipeline.declare.job import Job

Result_co = TypeVar("Result_co", covariant=True, default=Any)
# So many are read at a time.
PAGE = 1000


@dataclass(frozen=True)
class End(Generic[Result_co]):
    """How one child ended: ``succeeded``, ``failed`` or ``cancelled``, and with what.

    >>> End(UUID(int=1), status="failed", error="Permanent: no such page").ok
    False
    """

    id: UUID
    status: str = "succeeded"
    error: str | None = None
    _result: Any = field(default=None, repr=False)
    _codec: Codec = field(default=PLAIN, repr=False)

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.status == "succeeded"

    @property
    def result(self) -> Result_co:
        """What the child's last phase returned. Permanent if it did not succeed; Misuse if it is of another type."""
        if not self.ok:
            raise Permanent(f"child {self.id} has no result, it is {self.status}: {self.error}")
        try:
            return cast("Result_co", self._codec.decode(PLAIN.encode(self._result)))
        except DoesNotFit as error:
            raise Misuse(f"what child {self.id} returned does not fit: {error}") from None


class Ends(Sequence[End[Result_co]]):
    """How the children of an earlier phase ended, in the order in which they were submitted.

    >>> def add_up(job: Job, look: Ends[int]) -> int:
    ...     return sum(end.result for end in look if end.ok)
    >>> add_up(Job(), [End(UUID(int=1), _result=2), End(UUID(int=2), "failed", "no such page")])  # in a test
    2

    Lazy: they are read while one goes over them. In an ``async def`` phase: ``async for end in look``.
    """

    def __init__(self, job: Job[Any], told: Mapping[str, Any], codec: Codec) -> None:
        self._job = job
        self._codec = codec
        self.batch = UUID(told["batch"])
        self._total = int(told["total"])
        self.failed = int(told["failed"])

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[End[Result_co]]:
        after: UUID | None = None
        while page := self._now(self._page(after, 0, PAGE)):
            yield from page
            after = page[-1].id

    async def __aiter__(self) -> AsyncIterator[End[Result_co]]:
        after: UUID | None = None
        while page := await _later(self._page(after, 0, PAGE)):
            for row in page:
                yield self._end(row)
            after = page[-1]["id"]

    @overload
    def __getitem__(self, index: int) -> End[Result_co]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[End[Result_co]]: ...

    def __getitem__(self, index: int | slice) -> End[Result_co] | Sequence[End[Result_co]]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index + self._total if index < 0 else index
        if not 0 <= place < self._total:
            raise IndexError(f"there are {self._total} children, not {index}")
        return self._now(self._page(None, place, 1))[0]

    def _page(self, after: UUID | None, skip: int, most: int) -> Any:
        return self._job.services.ends(self.batch, after, skip, most)

    def _now(self, rows: Any) -> list[End[Result_co]]:
        if isinstance(rows, Awaitable):
            raise Misuse("the ends of children were read in an async def phase: write async for end in …")
        return [self._end(row) for row in rows]

    def _end(self, row: Mapping[str, Any]) -> End[Result_co]:
        return End(row["id"], row["status"], row["error"], row["result"], self._codec)


async def _later(rows: Any) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = await rows if isinstance(rows, Awaitable) else rows
    return found


@dataclass(frozen=True)
class EarlierEnds:
    """The ends of an earlier phase's children, as a phase function takes them: as an argument of the phase's name."""

    argument: str
    phase: str
    codec: Codec

    def value(self, job: Job[Any]) -> Ends[Any]:
        """Permanent if the job needed all of them, and one did not succeed."""
        told = job.results.get(self.phase)
        if not isinstance(told, Mapping) or "batch" not in told:
            raise Misuse(f"phase {job.phase} takes the ends of children of {self.phase}, which has not waited for any")
        if told["policy"] == "all" and told["failed"]:
            raise Permanent(f"child {told.get('child')} did not succeed: {told.get('error')}")
        return Ends(job, told, self.codec)
