"""What a job's calls return: one thing for ``def`` and ``async def`` phases. Awaiting does in one what calling does in
the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pipeline.declare.errors import Misuse

Answer = TypeVar("Answer")


class Waited:
    """Done in a ``def`` phase; in an ``async def`` phase it is done by awaiting it."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


DONE = Waited()


class Then(Waited):
    """What ``first`` answers, seen by ``check``, when it is awaited."""

    def __init__(self, first: Awaitable[Answer], check: Callable[[Answer], None] = lambda _: None) -> None:
        self._first = first
        self._check = check

    def __await__(self) -> Generator[Any, None, None]:
        self._check((yield from self._first.__await__()))


class Rows(list[Mapping[str, Any]]):
    """There in a ``def`` phase; in an ``async def`` phase they are there after awaiting them."""

    def __await__(self) -> Generator[Any, None, Rows]:
        return self
        yield


class LaterRows(Rows):
    """Rows that are asked for when they are awaited."""

    def __init__(self, ask: Awaitable[Sequence[Mapping[str, Any]]]) -> None:
        super().__init__()
        self._ask = ask

    def __await__(self) -> Generator[Any, None, Rows]:
        return Rows((yield from self._ask.__await__()))

    def _too_early(self, *_: object) -> Any:
        raise Misuse("rows were used before they were awaited: write rows = await job.read(…)")

    __iter__ = __len__ = __getitem__ = __contains__ = _too_early


class Calls:
    """The calls of one attempt that must be awaited: one that was forgotten is an error, and not nothing."""

    def __init__(self) -> None:
        self._open: set[Call[Any]] = set()

    def later(self, name: str, call: Callable[[], Awaitable[Answer]]) -> Call[Answer]:
        """A call that is made when it is awaited."""
        made = Call(self._open, name, call)
        self._open.add(made)
        return made

    def check(self) -> None:
        """At the end of the phase."""
        if self._open:
            name = min(call.name for call in self._open)
            raise Misuse(f"job.{name}(…) was called and not awaited, so that it did nothing: write await job.{name}(…)")


class Call(Generic[Answer]):
    """Made when it is awaited, and then no longer open."""

    def __init__(self, calls: set[Call[Any]], name: str, call: Callable[[], Awaitable[Answer]]) -> None:
        self._calls = calls
        self._call = call
        self.name = name

    def __await__(self) -> Generator[Any, None, Answer]:
        self._calls.discard(self)
        return (yield from self._call().__await__())
