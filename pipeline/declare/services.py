"""What a job reaches outside of its function, and what its calls return: one thing for both kinds of phases. Awaiting
does in an ``async def`` phase what calling does in a ``def`` phase."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from pipeline.declare.errors import Misuse

if TYPE_CHECKING:
    from pipeline.declare.waits.limits import Breaker

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

    def coroutine(self, name: str, call: Callable[[], Awaitable[Answer]]) -> Coroutine[Any, Any, Answer]:
        """As ``later``, as something that a task can be made of."""
        made = self.later(name, call)

        async def run() -> Answer:
            return await made

        return run()

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


class Guard:
    """A block that calls an outside system: ``with`` in a ``def`` phase, ``async with`` in an ``async def`` phase.

    This one lets everything through.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        return None

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        return self.__exit__(kind, error, where)


class Services:
    """What a job reaches outside of its function. A test brings its own, see ``pipeline.testing.FakeServices``."""

    # Whether the phase is async def; None: a step is what its function is.
    asynchronous: bool | None = None

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

    def ends(self, batch: UUID, after: UUID | None, skip: int, most: int) -> Sequence[Mapping[str, Any]] | LaterRows:
        """How children ended: id, workflow, status, error, result."""
        raise RuntimeError("this job has no database: give the phase a list of End(…) in a test")

    def event_link(self, job: UUID, event: str, expires: timedelta, body: object, fence: int) -> str:
        """A link that tells the job of an event. In a test it is one that no server takes."""
        return f"http://test.invalid/v1/events/{event}"

    def guard(self, breaker: Breaker) -> Guard:
        """The block of a breaker. In a test it lets everything through."""
        return Guard()

    @cached_property
    def calls(self) -> Calls:
        """What the phase must not forget to await."""
        return Calls()

    @cached_property
    def steps(self) -> dict[str, str]:
        """The JSON of what steps returned, by name: of a phase that has no database to keep it in."""
        return {}

    async def kept_steps(self) -> Mapping[str, str]:
        """The JSON of what earlier attempts kept, by name. In a def phase it blocks and never yields."""
        return self.steps

    async def keep_step(self, name: str, value: str) -> bool:
        """Keep what a step returned, as JSON; False when the attempt no longer holds its job."""
        self.steps[name] = value
        return True

    def report(self, done: int, total: int) -> bool | Awaitable[bool]:
        """Show progress; False when the attempt no longer holds its job."""
        return True

    def take_permit(self, rate_limit: str, calls: int) -> Awaitable[None] | None:
        """Wait for the rate limit, or raise Snooze."""
        return None
