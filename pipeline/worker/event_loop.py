"""The event loop of a process: its ``async def`` phases, hundreds at once beside the threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count as counter
from typing import TYPE_CHECKING, Any, TypeVar

from dramatiq.middleware import SkipMessage

from pipeline.declare.errors import PipelineError
from pipeline.journey.attempt import Elsewhere, execute
from pipeline.journey.checkpoint import Interrupted
from pipeline.journey.settle import settle_for_good
from pipeline.observe import logs
from pipeline.worker.loop_place import LoopPlace
from pipeline.worker.loop_watch import LoopWatch

if TYPE_CHECKING:
    from pipeline.broker.broker import PipelineBroker
    from pipeline.broker.inbound import Delivery
    from pipeline.journey.attempt import Attempt
    from pipeline.worker.process import WorkerProcess

Answer = TypeVar("Answer")

log = logs.get("pipeline.worker")

# Threads in which coroutines' calls that block are made: PostgreSQL's answers, mostly. No more than its pool has
# connections.
CALLS = 8
FAREWELL = 1.0


class Runner:
    """One event loop in a thread of its own. A loop that a coroutine blocks for too long is left to it, and another
    takes its place."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(executor)
        self.left = False
        self.tasks: dict[asyncio.Task[None], LoopPlace] = {}
        self._posted: deque[Callable[[], None]] = deque()
        self._scheduled = False
        self.thread = threading.Thread(target=self._run, name="pipeline-loop", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def post(self, call: Callable[[], None]) -> None:
        """Call it in the loop's thread. Many calls that come together wake the loop once."""
        self._posted.append(call)
        if self._scheduled:
            return
        self._scheduled = True
        try:
            self.loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            # The loop is closed: this process ends, or has another loop.
            self._posted.clear()

    def create(self, coroutine: Coroutine[Any, Any, None], place: LoopPlace) -> None:
        """Run it, in the loop's thread."""
        task = self.loop.create_task(coroutine)
        self.tasks[task] = place
        task.add_done_callback(self.tasks.pop)

    def running(self) -> Delivery | None:
        """Whose coroutine has the loop at this moment, as another thread sees it."""
        task = asyncio.current_task(self.loop)
        place = None if task is None else self.tasks.get(task)
        return None if place is None else place.delivery

    def leave(self) -> None:
        """Nothing that was posted to it happens any more, and it ends when it turns again."""
        self.left = True
        self.loop.call_soon_threadsafe(self.loop.stop)

    def _drain(self) -> None:
        self._scheduled = False
        while self._posted and not self.left:
            self._posted.popleft()()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        # They learn that nothing of theirs counts any more, and get a moment to close what they opened.
        for task in list(self.tasks):
            task.cancel()
        if self.tasks:
            self.loop.run_until_complete(asyncio.wait(list(self.tasks), timeout=FAREWELL))
        # As asyncio.run does it. The loop's HTTP connections close by this, too.
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


class EventLoop:
    """Runs what comes for ``async def`` phases, as Dramatiq's threads run the rest: the same hooks, in the same order.

    ``places`` attempts at once; what comes beyond that waits for one, earliest phase first (or last: the workflow's
    order). A job that continues with its next phase keeps the place that it has.
    """

    def __init__(self, broker: PipelineBroker, worker: WorkerProcess, places: int) -> None:
        self._broker = broker
        self._worker = worker
        self.places = places
        self._executor = ThreadPoolExecutor(CALLS, "pipeline-call")
        self._arrived: deque[Delivery] = deque()
        self._waiting: list[tuple[int, int, Delivery]] = []
        self._numbers = counter()
        self._busy = 0
        # What hears how many places are busy.
        self.started: Callable[[], None] = lambda: None
        self.ended: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._runner = Runner(self._executor)
        self._watch = LoopWatch(lambda: self._runner, worker.held)

    def start(self) -> None:
        self._runner.start()
        self._watch.start()

    def receive(self, delivery: Delivery) -> None:
        """A message that RabbitMQ sent, or that this process made. From any thread."""
        self._arrived.append(delivery)
        self._runner.post(self._take_all)

    def call(self, work: Callable[..., None], *args: Any) -> None:
        """In one of the threads that coroutines' calls are made in; nobody waits for it."""
        self._executor.submit(work, *args)

    def stop(self) -> None:
        self._watch.stop()
        self._runner.leave()
        self._executor.shutdown(wait=False)

    def abandoned(self, attempt: Attempt) -> bool:
        """The attempt is settled without its coroutine, which did not end when it was told to: its place is free.

        True if it blocks the loop. That is left to it then, and another takes its place; its other jobs are released at
        no cost.
        """
        runner = attempt.runner
        assert isinstance(runner, Runner)
        with self._lock:
            if runner.left or not self._watch.is_blocked(runner):
                runner.post(self._free_place)
                return False
            self._replace(runner)
        for innocent in self._worker.held.all():
            if innocent.runner is runner:
                innocent.interrupt("blocked")
                if innocent.give_up():
                    self.call(settle_for_good, self._worker, innocent, Interrupted())
        return True

    def _replace(self, runner: Runner) -> None:
        # Messages whose claim nobody hears the answer of: asked again, they get the same one.
        unclaimed = [place.delivery for place in list(runner.tasks.values()) if place.waits_for_claim]
        runner.leave()
        busy, self._busy = self._busy, 0
        for _ in range(busy):
            self.ended()
        self._runner = Runner(self._executor)
        self._runner.start()
        self._arrived.extend(unclaimed)
        self._runner.post(self._take_all)

    def _free_place(self) -> None:
        self._busy -= 1
        self.ended()
        self._fill()

    def _take_all(self) -> None:
        while self._arrived:
            delivery = self._arrived.popleft()
            if delivery.attempt is not None:
                self._begin(delivery)
            else:
                heappush(self._waiting, (self._broker.rank(delivery.queue), next(self._numbers), delivery))
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._busy < self.places:
            self._begin(heappop(self._waiting)[2])

    def _begin(self, delivery: Delivery) -> None:
        self._busy += 1
        self.started()
        place = LoopPlace(self._runner, delivery)
        self._runner.create(self._process(place, delivery, self._runner), place)

    def _ended(self, delivery: Delivery, runner: Runner) -> None:
        if not runner.left and not delivery.abandoned:
            self._free_place()

    async def _process(self, place: LoopPlace, delivery: Delivery, runner: Runner) -> None:
        """As Dramatiq's WorkerThread does it. Errors are settled in a thread: that asks PostgreSQL."""
        try:
            self._broker.emit_before("process_message", delivery)
            if not delivery.failed:
                phase = self._broker.phase(delivery.actor_name)
                await execute(self._worker, phase, delivery.args, delivery, place)
            self._broker.emit_after("process_message", delivery, result=None)
            self._acknowledge(delivery)
        except SkipMessage:
            self._broker.emit_after("skip_message", delivery)
            self._acknowledge(delivery)
        except Elsewhere:
            self._broker.emit_after("skip_message", delivery)
            self._worker.run_in_thread(delivery)
        except BaseException as error:
            if not isinstance(error, PipelineError | Interrupted):
                log.error("a phase raised", queue=delivery.queue, exc_info=error)
            if not runner.left:
                await runner.loop.run_in_executor(None, self._failed, delivery, error)
            elif delivery.abandoned:
                self._broker.emit_after("process_message", delivery, exception=error)
        finally:
            self._ended(delivery, runner)

    def _failed(self, delivery: Delivery, error: BaseException) -> None:
        self._broker.emit_after("process_message", delivery, exception=error)
        self._acknowledge(delivery)

    def _acknowledge(self, delivery: Delivery) -> None:
        how = "nack" if delivery.failed else "ack"
        self._broker.emit_before(how, delivery)
        if delivery.failed:
            self._worker.inbound.reject(delivery)
        elif not delivery.deferred:
            self._worker.inbound.ack([delivery])
        self._broker.emit_after(how, delivery)
