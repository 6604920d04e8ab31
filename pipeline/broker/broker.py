"""The Dramatiq broker of the project."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import dramatiq
import pika
from dramatiq.broker import Consumer
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.common import q_name
from dramatiq.middleware import Middleware, SkipMessage

from pipeline.broker.inbound import Inbound, PhaseConsumer, PhasesThread, SweepConsumer
from pipeline.broker.outbound import Link, Outbound
from pipeline.broker.topology import SWEEPS, QueueType, declare
from pipeline.declare.errors import BadInput

if TYPE_CHECKING:
    from pika.connection import Parameters

    from pipeline.broker.inbound import Delivery
    from pipeline.declare.registry import DeclaredPhase

# pika tells every connection's life at length, to whoever imports this: the scheduler too.
logging.getLogger("pika").setLevel(logging.WARNING)


class EngineActor(dramatiq.Actor[Any, Any]):
    """A phase or a sweep: the only actors that the pipeline's broker takes."""

    phase: DeclaredPhase | None = None


class PipelineBroker(RabbitmqBroker):
    """Dramatiq's RabbitMQ broker with one consuming and one publishing connection a process.

    ``address`` is asked when a connection is first needed, never at import. There are no delay queues:
    whatever waits, waits in PostgreSQL.
    """

    def __init__(
        self,
        address: Callable[[], tuple[str, QueueType]],
        middleware: list[Middleware],
        guarded: Callable[[str, Callable[[], None]], threading.Thread],
    ) -> None:
        self._address = address
        self._guarded = guarded
        self._ranks: dict[str, int] = {}
        super().__init__(confirm_delivery=True, middleware=middleware)
        self.link: Link | None = None
        self.inbound: Inbound | None = None
        self.outbound: Outbound | None = None
        self.before_close: Callable[[], None] = lambda: None
        self.exit_code = 0

    @property  # type: ignore[override]
    def parameters(self) -> list[Parameters]:
        """Where RabbitMQ is; several addresses of a cluster are separated by ';'.

        For Dramatiq's own connection, by which only the scheduler sends. Nobody answers a heartbeat between two of
        its minutes.
        """
        choices = self._addresses(blocked_timeout=30)
        for choice in choices:
            choice.heartbeat = 0
        return choices

    @parameters.setter
    def parameters(self, value: object) -> None:
        """Dramatiq's own default is not used: the address comes from the settings."""

    @property
    def queue_type(self) -> QueueType:
        return self._address()[1]

    def open(self) -> tuple[Inbound, Outbound]:
        """Start the AMQP thread of this process."""
        if self.link is None:
            self.link = Link("pipeline-amqp", self._guarded)
            self.inbound = Inbound(self.link, self._addresses, self.queue_type, self.rank)
            self.outbound = Outbound(self.link, self._addresses, self.queue_type)
            self.link.start()
            self.link.add(self.inbound)
            self.link.add(self.outbound)
        assert self.inbound is not None and self.outbound is not None
        return self.inbound, self.outbound

    def close(self) -> None:
        if self.link is not None:
            self.link.stop()
        super().close()
        if self.exit_code:
            # Dramatiq's worker would end with 0, and nobody would start it again.
            sys.exit(self.exit_code)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        inbound, _ = self.open()
        if queue_name == SWEEPS:
            return SweepConsumer(inbound, queue_name, timeout / 1000, self._run_inline)
        thread = cast(PhasesThread, threading.current_thread())
        return PhaseConsumer(inbound, thread.intakes, timeout / 1000, on_close=self._closing)

    def declare_actor(self, actor: dramatiq.Actor[Any, Any]) -> None:
        """Refuses an application's own actors: their retries and delays are Dramatiq's, which this broker replaces."""
        if not isinstance(actor, EngineActor):
            raise BadInput(
                f"actor {actor.actor_name} cannot run on the pipeline's broker: give it a broker of its own, "
                "@dramatiq.actor(broker=...), and run it in a worker of its own"
            )
        super().declare_actor(actor)
        self._ranks[actor.queue_name] = min(actor.priority, self.rank(actor.queue_name, actor.priority))

    def declare_queue(self, queue_name: str, *, ensure: bool = False) -> None:
        """As Dramatiq's, without the delay queue."""
        name = q_name(queue_name)
        if name not in self.queues:
            self.emit_before("declare_queue", name)
            self.queues.add(name)
            self.queues_pending.add(name)
            self.emit_after("declare_queue", name)
        if ensure:
            self._ensure_queue(name)  # type: ignore[no-untyped-call]

    def phase(self, actor_name: str) -> DeclaredPhase:
        """The phase that an actor runs."""
        actor = self.get_actor(actor_name)
        if not isinstance(actor, EngineActor) or actor.phase is None:
            raise BadInput(f"actor {actor_name} is not a phase")
        return actor.phase

    def rank(self, queue: str, default: int = 0) -> int:
        """The phase with the lowest goes first."""
        return self._ranks.get(queue, default)

    def _addresses(self, blocked_timeout: float | None = None) -> list[Parameters]:
        # The link waits out a memory alarm: giving up would only send everything again.
        return [_with_limits(pika.URLParameters(url), blocked_timeout) for url in self._address()[0].split(";")]

    def _declare_queue(self, queue_name: str) -> None:
        declare(self.channel, [queue_name], self.queue_type)

    def _declare_dq_queue(self, queue_name: str) -> None:
        """There is none."""

    def _declare_xq_queue(self, queue_name: str) -> None:
        """Declared together with its queue."""

    def _closing(self) -> None:
        # Dramatiq closes consumers after its threads ended: the last chance to acknowledge what they did.
        self.before_close()

    def _run_inline(self, delivery: Delivery) -> None:
        try:
            self.emit_before("process_message", delivery)
            result = self.get_actor(delivery.actor_name)(*delivery.args, **delivery.kwargs)
            self.emit_after("process_message", delivery, result=result)
        except SkipMessage:
            self.emit_after("skip_message", delivery)
        except Exception as error:
            self.logger.exception("sweep %s failed; the next one will try again", delivery.actor_name)
            self.emit_after("process_message", delivery, exception=error)


def _with_limits(parameters: pika.URLParameters, blocked_timeout: float | None) -> Any:
    # A frozen process must not sit on what it prefetched: RabbitMQ gives it up after two missed heartbeats.
    parameters.heartbeat = 10
    parameters.blocked_connection_timeout = blocked_timeout
    parameters.socket_timeout = 10
    parameters.stack_timeout = 15
    return parameters
