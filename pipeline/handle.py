"""What a submit returns: a job to wait for, to watch, to cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic
from uuid import UUID

from typing_extensions import TypeVar

from pipeline.declare.codec import DoesNotFit
from pipeline.declare.errors import BadInput, JobCancelled, JobFailed, Misuse
from pipeline.declare.registry import result_codec
from pipeline.declare.states import Status
from pipeline.event_links import event_link
from pipeline.journey.ends import ends
from pipeline.journey.submit import cancel, replay, signal
from pipeline.store.gateway.client import SignalAnswer
from pipeline.store.gateway.results import JobStatus

Result_co = TypeVar("Result_co", covariant=True, default=Any)
Pending = Future[JobStatus | None]

# How long PostgreSQL may take to say how a job is: when that is asked for, and when a timeout is to be explained.
ANSWER, EXPLANATION = 10.0, 3.0


@dataclass(frozen=True)
class JobHandle(Generic[Result_co]):
    """A job by its id. Its methods block until PostgreSQL answers; ``aio`` has the same ones to be awaited.

    >>> job = orders.submit({"order": 17})
    >>> job.result(timeout=30)
    'charged with ...:charge'
    >>> job.status().state
    <Status.SUCCEEDED: 'succeeded'>
    """

    id: UUID

    def __str__(self) -> str:
        return str(self.id)

    @property
    def aio(self) -> AsyncJobHandle[Result_co]:
        """The same job, for an event loop."""
        return AsyncJobHandle(self.id)

    def result(self, timeout: float | None = None) -> Result_co:
        """Wait until the job has ended, and return what its last phase returned: None if that was nothing.

        Woken by the commit of the job's last transition; waiting costs no query and survives restarts of PostgreSQL.
        After ``timeout`` seconds (None: never) TimeoutError says where the job is; the job goes on. JobFailed or
        JobCancelled if it ended so. BadInput if there is no such job: commit first what submitted it.
        """
        try:
            found = _block(self.id, _ended(self.id), timeout, "result")
        except TimeoutError:
            found = _final(self._look(EXPLANATION), timeout)
        value: Result_co = _value(found)
        return value

    def status(self) -> JobStatus:
        """How the job is now."""
        return self._look(ANSWER)

    def watch(self) -> Iterator[JobStatus]:
        """How the job is now, then each change that a look once a second finds, and its end as soon as it is there."""
        seen = self.status()
        yield seen
        while not seen.is_final:
            seen = _block(self.id, _changed(seen), None, "watch")
            yield seen

    def cancel(self, reason: str = "cancelled by request") -> bool:
        """Cancel the job, in a transaction of its own. False if it does not exist or has already finished."""
        return cancel(None, self.id, reason)

    def replay(self) -> bool:
        """Start the phase of the failed job again, with fresh budgets. False if the job is not failed."""
        return replay(None, self.id)

    def signal(self, event: str, body: object = None) -> SignalAnswer:
        """Tell the job of an event, in a transaction of its own; see ``pipeline.signal``."""
        return signal(None, self.id, event, body)

    def event_link(self, event: str, *, expires: timedelta = timedelta(days=7), body: object = None) -> str:
        """An address at which whoever has it can tell the job of the event, once; see ``Job.event_link``."""
        return event_link(self.id, event, expires=expires, body=body)

    def _look(self, seconds: float) -> JobStatus:
        with _answer_expected(self.id):
            return _block(self.id, _at_once(self.id), seconds, "status")


@dataclass(frozen=True)
class AsyncJobHandle(Generic[Result_co]):
    """A job by its id, for an event loop: what ``JobHandle`` does, to be awaited. Waiting takes no thread.

    >>> async def order() -> str:
    ...     return await orders.submit({"order": 17}).aio.result(timeout=30)
    >>> asyncio.run(order())
    'charged with ...:charge'
    """

    id: UUID

    def __str__(self) -> str:
        return str(self.id)

    async def result(self, timeout: float | None = None) -> Result_co:
        """Wait until the job has ended, and return what its last phase returned; see ``JobHandle.result``."""
        try:
            found = await _wait(self.id, _ended(self.id), timeout)
        except TimeoutError:
            found = _final(await self._look(EXPLANATION), timeout)
        value: Result_co = _value(found)
        return value

    async def status(self) -> JobStatus:
        """How the job is now."""
        return await self._look(ANSWER)

    async def watch(self) -> AsyncIterator[JobStatus]:
        """How the job is now, then each change that a look once a second finds, and its end as soon as it is there."""
        seen = await self.status()
        yield seen
        while not seen.is_final:
            seen = await _wait(self.id, _changed(seen), None)
            yield seen

    async def cancel(self, reason: str = "cancelled by request") -> bool:
        """Cancel the job, in a transaction of its own. False if it does not exist or has already finished."""
        return await asyncio.to_thread(cancel, None, self.id, reason)

    async def replay(self) -> bool:
        """Start the phase of the failed job again, with fresh budgets. False if the job is not failed."""
        return await asyncio.to_thread(replay, None, self.id)

    async def signal(self, event: str, body: object = None) -> SignalAnswer:
        """Tell the job of an event, in a transaction of its own; see ``pipeline.signal``."""
        return await asyncio.to_thread(signal, None, self.id, event, body)

    def event_link(self, event: str, *, expires: timedelta = timedelta(days=7), body: object = None) -> str:
        """As ``JobHandle.event_link``; it needs no waiting."""
        return event_link(self.id, event, expires=expires, body=body)

    async def _look(self, seconds: float) -> JobStatus:
        with _answer_expected(self.id):
            return await _wait(self.id, _at_once(self.id), seconds)


def job(job_id: UUID | str) -> JobHandle[Any]:
    """Any job, by its id, wherever it was submitted. Its result is of its type where its workflow is declared.

    >>> submitted = str(orders.submit({"order": 17}))
    >>> job(submitted).result(timeout=30)
    'charged with ...:charge'
    """
    try:
        return JobHandle(job_id if isinstance(job_id, UUID) else UUID(job_id))
    except ValueError:
        raise BadInput(f"{job_id!r} is not a job id; ids look like 01a1e35a-acab-720d-861a-d34a819014b2") from None


async def awaited(submitted: Coroutine[Any, Any, UUID]) -> AsyncJobHandle[Any]:
    """The handle of a job that is submitted by awaiting it."""
    return AsyncJobHandle(await submitted)


async def all_awaited(submitted: Coroutine[Any, Any, list[UUID]]) -> list[AsyncJobHandle[Any]]:
    """As ``awaited``, of many."""
    return [AsyncJobHandle(job) for job in await submitted]


def _ended(job: UUID) -> Pending:
    return ends().wait(job, "end", lambda status: status is None or status.is_final)


def _changed(seen: JobStatus) -> Pending:
    return ends().wait(seen.id, "change", lambda status: status != seen)


def _at_once(job: UUID) -> Pending:
    return ends().wait(job, "look", lambda _: True)


def _block(job: UUID, pending: Pending, seconds: float | None, call: str) -> JobStatus:
    """Hold up this thread until there is an answer. Never one that others share."""
    try:
        _refuse_event_loop(call)
        return _existing(job, pending.result(seconds))
    finally:
        pending.cancel()


def _refuse_event_loop(call: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise Misuse(f"job.{call}() would hold up the event loop of this thread: write await job.aio.{call}()")


async def _wait(job: UUID, pending: Pending, seconds: float | None) -> JobStatus:
    return _existing(job, await asyncio.wait_for(asyncio.wrap_future(pending), seconds))


def _existing(job: UUID, found: JobStatus | None) -> JobStatus:
    if found is None:
        raise BadInput(
            f"there is no job {job}: commit the transaction that submitted it before you ask for it "
            "(or was it deleted or pruned, or is this another database?)"
        )
    return found


@contextmanager
def _answer_expected(job: UUID) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise TimeoutError(f"PostgreSQL does not say how job {job} is; the job goes on. Try: pipeline doctor") from None


def _final(found: JobStatus, timeout: float | None) -> JobStatus:
    """The job, if it ended at the last moment. TimeoutError with the reason if not."""
    if found.is_final:
        return found
    waits = f", waits: {found.wait_reason}" if found.wait_reason else ""
    until = f" until {found.due_at:%F %T %Z}" if found.due_at else ""
    raise TimeoutError(
        f"job {found.id} has not ended within {timeout:g} s: it is {found.state} in {found.workflow}.{found.phase}"
        f"{waits}{until}. The job goes on; see: pipeline status {found.id}"
    )


def _value(found: JobStatus) -> Any:
    if found.state is Status.FAILED:
        raise JobFailed(found.id, f"{found.workflow}.{found.phase}", found.error or "")
    if found.state is Status.CANCELLED:
        raise JobCancelled(found.id, found.error or "")
    try:
        return result_codec(found.workflow).decode(found.result or "null")
    except DoesNotFit as error:
        raise BadInput(
            f"what job {found.id} returned is not of the type that workflow {found.workflow} has here: {error}"
        ) from None
