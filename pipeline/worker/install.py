"""The broker of this process, with the middleware that makes phases durable, and an actor for each declared phase."""

from __future__ import annotations

from functools import lru_cache

from periodiq import PeriodiqMiddleware

from pipeline import settings
from pipeline.broker.broker import EngineActor, PipelineBroker
from pipeline.broker.topology import QueueType
from pipeline.declare.errors import PipelineError
from pipeline.declare.registry import DeclaredPhase, workflows
from pipeline.journey.attempt import execute
from pipeline.journey.checkpoint import Interrupted
from pipeline.maintenance import schedule
from pipeline.worker import process
from pipeline.worker.boot import Engine
from pipeline.worker.essential import essential_thread
from pipeline.worker.retries import PhaseRetries

# Sweeps have a thread of their own but may wait for a restart; a late sweep is still a good one.
LATE = 600


@lru_cache(maxsize=1)
def broker() -> PipelineBroker:
    """Made once a process. It is nobody's global broker unless the composition root makes it that."""
    made = PipelineBroker(
        _address, [Engine(declare_actors), PhaseRetries(), PeriodiqMiddleware(skip_delay=LATE)], essential_thread
    )
    schedule.declare(made)
    return made


def declare_actors(made: PipelineBroker) -> None:
    """An actor for every phase that was declared since the last call."""
    for workflow in workflows().values():
        for position, phase in enumerate(workflow.phases):
            if phase.spec.actor not in made.actors:
                _actor(made, phase, position)


def _actor(made: PipelineBroker, phase: DeclaredPhase, position: int) -> EngineActor:
    def run(*message: object) -> None:
        execute(process.current(), phase, message)

    run.__module__ = phase.work.__module__
    return EngineActor(
        run,
        actor_name=phase.spec.actor,
        queue_name=phase.spec.queue,
        priority=position if phase.spec.start_first else -position,
        broker=made,
        # What a phase raises on purpose needs no traceback; its settlement is logged.
        options={"throws": (PipelineError, Interrupted)},
    )


def _address() -> tuple[str, QueueType]:
    config = settings.get()
    return config.rabbitmq_url.get_secret_value(), config.queue_type
