"""What a phase function gets and gives: the job, and what travels with it."""

from __future__ import annotations

import inspect
import json
import math
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Union, cast
from uuid import UUID

import orjson
from typing_extensions import TypeVar

from pipeline.declare import lossless
from pipeline.declare.errors import Cancelled, Misuse, StaleClaim
from pipeline.declare.phase import idempotency_key
from pipeline.declare.services import DONE, Rows, Services, Then, Waited
from pipeline.declare.waits.next import Children, Next, Policy

if TYPE_CHECKING:
    from sqlalchemy import Connection, Executable

    from pipeline.declare.steps import Steps
    from pipeline.workflow import Workflow

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_UUID
Taken = ParamSpec("Taken")
Returned = TypeVar("Returned")
# An async function gets what it can await: ``execute``, ``scalar`` and ``run_sync`` of a connection.
Write = Callable[["Connection"], object] | Callable[[Any], Awaitable[object]]
Values = Mapping[str, Any] | Sequence[Mapping[str, Any]]
# Alone, or with its values.
Statement = Union["Executable", tuple["Executable", Values]]


class Plain:
    """Whatever JSON can say. Decimals, dates, UUIDs, enums, dataclasses and models arrive as JSON has them."""

    annotation = dict

    def encode(self, value: object) -> bytes:
        return encode(value)

    def decode(self, text: bytes | str) -> Any:
        return decode(text)

    def schema(self) -> None:
        return None


PLAIN = Plain()


def encode(value: object) -> bytes:
    """The JSON of a body or result. Raises ValueError with a sentence about what JSON cannot say."""
    try:
        encoded = orjson.dumps(value, default=_other, option=OPTIONS)
    except TypeError as error:
        raise ValueError(str(error.__cause__ or error)) from None
    # Nearly all values have neither.
    if b"null" in encoded or lossless.ASTERISKS in encoded:
        lossless.check(encoded, lambda: value)
    return encoded


def _other(value: Any) -> object:
    """What orjson does not know by itself."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise TypeError(lossless.NO_NUMBER)
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", by_alias=True)
    raise TypeError(f"Type is not JSON serializable: {type(value).__name__}")


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


# Covariant: a phase may ask for less than it gets.
Body_co = TypeVar("Body_co", covariant=True, default=dict[str, Any])
Result_co = TypeVar("Result_co", covariant=True, default=Any)


@dataclass(frozen=True)
class Done(Generic[Result_co]):
    """Success. ``result`` is small and goes to later phases; ``write`` runs in the transaction that ends the phase.

    >>> paid = text("UPDATE orders SET paid = true WHERE id = :order")
    >>> Done("paid", write=[(paid, {"order": 17})]).result
    'paid'

    ``write`` is a list of statements, or a function that gets an SQLAlchemy connection and must only write. What it
    does commits together with the job's transition and the hand-over to the next phase, or not at all. Other jobs'
    writes share the transaction while they are short. A function may be called twice; one call counts.
    ``after``: the next phase begins so long after this one.
    """

    result: Result_co | None = None
    write: Write | Sequence[Statement] | None = None
    after: timedelta | None = None
    next: Next | None = field(default=None, repr=False)
    children: Children[Any] | None = field(default=None, repr=False)

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


@dataclass(frozen=True)
class AsJson:
    """A result that was encoded already, by the child process that ran the phase."""

    text: str


def as_done(value: object) -> Done:
    """What a phase function returned, as a ``Done``: a result, a function that writes, children, or a Done itself."""
    if isinstance(value, Done):
        return value
    if isinstance(value, Children):
        return Done(next=Next(batch=value.batch), children=value)
    if callable(value):
        return Done(write=value)
    return Done(result=value)


class Argument(Protocol):
    """What a phase function takes beside the job (pipeline.declare.codec.Earlier)."""

    @property
    def argument(self) -> str: ...

    def value(self, job: Job[Any]) -> Any: ...


class Performed(Protocol):
    """A phase as far as its work is concerned (pipeline.declare.registry.DeclaredPhase)."""

    @property
    def work(self) -> Callable[..., Any]: ...

    @property
    def takes(self) -> Sequence[Argument]: ...

    @property
    def around(self) -> Sequence[Callable[[Any], AbstractContextManager[Any]]]: ...


def perform(phase: Performed, job: Job[Any]) -> Any:
    """Do a phase's work, with the results of the earlier phases that its function asks for."""
    taken = {one.argument: one.value(job) for one in phase.takes}
    if not phase.around:
        return phase.work(job, **taken)
    if inspect.iscoroutinefunction(phase.work):
        return _later(phase, job, taken)
    with _around(phase, job):
        return phase.work(job, **taken)


async def _later(phase: Performed, job: Job[Any], taken: Mapping[str, Any]) -> Any:
    with _around(phase, job):
        return await phase.work(job, **taken)


@contextmanager
def _around(phase: Performed, job: Job[Any]) -> Iterator[None]:
    """What the workflow has around its attempts. None of it can swallow an error: that says what becomes of the job."""
    raised: BaseException | None = None
    try:
        with ExitStack() as stack:
            try:
                for manager in phase.around:
                    stack.enter_context(manager(job))
                yield
            except BaseException as error:
                raised = error
                raise
        if raised is not None:
            raise raised
    finally:
        # It refers to this frame, which need not wait for the garbage collection.
        raised = None


Child = TypeVar("Child")
ChildResult = TypeVar("ChildResult")
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


@dataclass
class Job(Generic[Body_co]):
    """One attempt at one phase. Build it yourself to test a phase without broker or database: ``Job({"url": …})``.

    >>> check_stock(Job({"order": 17}))
    {'left': 3}

    In an ``async def`` phase await what waits: ``rows = await job.read(…)``, ``await job.keep(…)``,
    ``await job.progress(…)``, ``await job.limit(…)``, ``await job.step(…)``.
    """

    body: Body_co = field(default_factory=cast(Any, dict))
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
        """The same for every attempt at this phase; give it to outside systems so that they can spot a repeat.

        >>> Job({"order": 17}, phase="charge").idempotency_key
        '00000000-0000-0000-0000-000000000000:charge'
        """
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
        """Rows of a short query, in a transaction of its own.

        >>> job = Job({"order": 17}, services=FakeServices(read=lambda statement, values: [{"paid": True}]))
        >>> job.read("SELECT paid FROM orders WHERE id = :order", order=17)[0]["paid"]
        True
        """
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

    def step(
        self, name: str, function: Callable[Taken, Returned], /, *args: Taken.args, **named: Taken.kwargs
    ) -> Returned:
        """Call the function once, and keep what it returned: later attempts at this phase get that without a call.

        >>> job = Job({"order": 17})
        >>> [job.step("capture", str.upper, said) for said in ("paid", "not called again")]
        ['PAID', 'PAID']

        Kept under the fence when this returns, through kills, retries, waits and deploys; a call that was cut off
        before that is made again (see ``step_key``). The result comes back as its JSON says, of the type that the
        function's annotation names. A second call of the same name gets the first one's result: in a loop the name
        has an index. Raises, and keeps nothing, when the job is lost. In an ``async def`` phase: an async function,
        awaited.
        """
        answer: Returned = self._steps.call(name, function, args, named)
        return answer

    def step_key(self, name: str) -> str:
        """The idempotency key of a step: the same for every attempt; outside systems spot a repeated call by it.

        >>> Job({"order": 17}, phase="charge").step_key("capture")
        '00000000-0000-0000-0000-000000000000:charge:capture'
        """
        return f"{self.idempotency_key}:{name}"

    def sleep(self, name: str, duration: timedelta) -> Waited:
        """Wait so long, holding nothing: the phase ends here, and begins anew when the time is over.

        >>> Job({"order": 17}).sleep("until the parcel is there", timedelta(days=2))
        Traceback (most recent call last):
        pipeline.declare.errors.Snooze: waits 172800.0 s: sleep

        It then comes past here at once: steps and sleeps of this name are behind it. Costs no budget.
        """
        return self._steps.sleep(name, duration)

    def goto(self, phase: Callable[..., Any] | str, result: Returned | None = None) -> Returned:
        """Return it from a phase: the job continues with this phase of its workflow, an earlier one or a later one.

        >>> @orders.phase
        ... def ship(job: Job, check_stock: dict[str, int]) -> str:
        ...     return "shipped" if check_stock["left"] else job.goto("check-stock")

        ``result`` is this phase's. Phases that the job comes to once more run their steps once more.
        """
        from pipeline.declare.waits.branches import goto  # which needs this module first

        return cast("Returned", goto(self, phase, result))

    def finish(self, result: Returned | None = None) -> Returned:
        """Return it from a phase: the job has succeeded, whatever phases there are. ``result`` is the job's.

        >>> @complaints.phase
        ... def answer(job: Job) -> str | None:
        ...     return job.finish("answered already") if job.body.get("answered") else None
        """
        return cast("Returned", Done(result, next=Next(finish=True)))

    def wait_for(self, event: str, *, timeout: timedelta | None = None, default: Returned | None = None) -> Returned:
        """Return it from a phase: the job continues with the next one when it is told of the event, and holds nothing.

        >>> @complaints.phase
        ... def ask(job: Job) -> dict[str, str] | None:
        ...     return job.wait_for("approved", timeout=timedelta(days=7))
        >>> @complaints.phase
        ... def refund(job: Job, ask: dict[str, str] | None) -> str:
        ...     return f"approved by {ask['by']}" if ask else "nobody has answered"
        >>> job = complaints.submit({"order": 17})
        >>> run.drain()
        >>> job.signal("approved", {"by": "Ada"})
        'delivered'
        >>> job.result()
        'approved by Ada'

        ``pipeline.signal(job, event, body)`` tells it, before the wait or while it waits. The body is this phase's
        result, or ``default`` when the time is over.
        """
        from pipeline.declare.waits.branches import wait_for  # which needs this module first

        return cast("Returned", wait_for(event, timeout, default))

    def event_link(self, event: str, *, expires: timedelta = timedelta(days=7), body: object = None) -> str:
        """An address for a person or another system: whoever has it can tell this job of the event, once, until then.

        It shows a page with a button; only a POST tells the event. ``body``: what it tells; without one a POST may
        bring JSON. Needs ``PIPELINE_EVENT_SECRET``.
        """
        return self.services.event_link(self.id, event, expires, body, self.fence)

    def spawn(
        self,
        workflow: Workflow[Child, ChildResult] | str,
        bodies: Iterable[Child | Mapping[str, Any]],
        *,
        policy: Policy = "best_effort",
        priority: int = 0,
    ) -> Children[ChildResult]:
        """Return it from a phase: a job of the workflow for each body, up to 100,000. The job waits for their ends, and
        holds nothing; a later phase takes them, in order, as an argument of this phase's name: ``look: Ends[Page]``.

        >>> stocktaking = Workflow("stocktaking")
        >>> @stocktaking.phase
        ... def each(job: Job) -> Children[str]:
        ...     return job.spawn(orders, [{"order": 1}, {"order": 2}])
        >>> @stocktaking.phase
        ... def add_up(job: Job, each: Ends[str]) -> str:
        ...     return f"{len(each)} orders, {each.failed} failed"
        >>> stocktaking.submit().result()
        '2 orders, 0 failed'

        ``policy``: ``best_effort`` waits for all of them, however they end; ``all`` fails this job as soon as one
        does not succeed; ``any`` continues with the first that succeeds. Those that are no longer waited for are
        cancelled, and so are all of them with this job.
        """
        from pipeline.declare.waits.branches import spawn  # which needs this module first

        return spawn(self, workflow, bodies, policy, priority)

    @cached_property
    def _steps(self) -> Steps:
        from pipeline.declare.steps import Steps  # which needs this module first

        return Steps(self)

    def limit(self, rate_limit: str, calls: int = 1) -> Waited:
        """Return when so many calls may be made now under the rate limit's rate, which all workers share.

        >>> job = Job({"order": 17})
        >>> _ = job.limit("maps", calls=2)  # returns when both may be made

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
