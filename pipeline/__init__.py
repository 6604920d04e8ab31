"""A durable job pipeline: phases on Dramatiq and RabbitMQ, PostgreSQL the single source of truth about every job."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.declare.backoff import Backoff, exponential
    from pipeline.declare.errors import (
        BadInput,
        Cancelled,
        JobCancelled,
        JobFailed,
        Permanent,
        Snooze,
        StaleClaim,
        Transient,
        retry_after,
    )
    from pipeline.declare.extension import View, extend
    from pipeline.declare.job import Done, Job
    from pipeline.declare.phase import Throttle
    from pipeline.declare.waits.children import End, Ends
    from pipeline.declare.waits.limits import Breaker, Limit
    from pipeline.declare.waits.next import Children
    from pipeline.handle import AsyncJobHandle, JobHandle, job
    from pipeline.journey.rate_limits import pause_rate_limit, set_rate_limit
    from pipeline.journey.submit import cancel, open_batch, replay, seal_batch, signal, submit, submit_many
    from pipeline.observe.instruments import count
    from pipeline.phase import Phase
    from pipeline.scheduling import (
        backfill,
        pause_schedule,
        resume_schedule,
        run_schedule,
        schedule,
        schedules,
        unschedule,
    )
    from pipeline.store.database import engine
    from pipeline.store.gateway.callers import readable_errors
    from pipeline.store.gateway.results import JobStatus
    from pipeline.store.gateway.schedules import Schedule
    from pipeline.testing.dispatch import (
        JobDispatcher,
        JobHandler,
        MemoryDispatcher,
        TransactionDispatcher,
        run_handler,
    )
    from pipeline.workflow import Workflow

__version__ = "0.2.0"

__all__ = [
    "AsyncJobHandle",
    "Backoff",
    "BadInput",
    "Breaker",
    "Cancelled",
    "Children",
    "Done",
    "End",
    "Ends",
    "Job",
    "JobCancelled",
    "JobDispatcher",
    "JobFailed",
    "JobHandle",
    "JobHandler",
    "JobStatus",
    "Limit",
    "MemoryDispatcher",
    "Permanent",
    "Phase",
    "Schedule",
    "Snooze",
    "StaleClaim",
    "Throttle",
    "TransactionDispatcher",
    "Transient",
    "View",
    "Workflow",
    "backfill",
    "cancel",
    "count",
    "engine",
    "exponential",
    "extend",
    "job",
    "open_batch",
    "pause_rate_limit",
    "pause_schedule",
    "readable_errors",
    "replay",
    "resume_schedule",
    "retry_after",
    "run_handler",
    "run_schedule",
    "schedule",
    "schedules",
    "seal_batch",
    "set_rate_limit",
    "signal",
    "submit",
    "submit_many",
    "unschedule",
]

# Resolved at first use, so that a client does not load a whole worker.
_HOMES = {
    "pipeline.phase": ("Phase",),
    "pipeline.workflow": ("Workflow",),
    "pipeline.declare.backoff": ("Backoff", "exponential"),
    "pipeline.declare.waits.children": ("End", "Ends"),
    "pipeline.declare.errors": (
        "BadInput",
        "Cancelled",
        "JobCancelled",
        "JobFailed",
        "Permanent",
        "Snooze",
        "StaleClaim",
        "Transient",
        "retry_after",
    ),
    "pipeline.declare.extension": ("View", "extend"),
    "pipeline.declare.job": ("Done", "Job"),
    "pipeline.declare.waits.next": ("Children",),
    "pipeline.declare.waits.limits": ("Breaker", "Limit"),
    "pipeline.declare.phase": ("Throttle",),
    "pipeline.handle": ("AsyncJobHandle", "JobHandle", "job"),
    "pipeline.journey.rate_limits": ("pause_rate_limit", "set_rate_limit"),
    "pipeline.journey.submit": (
        "cancel",
        "open_batch",
        "replay",
        "seal_batch",
        "signal",
        "submit",
        "submit_many",
    ),
    "pipeline.observe.instruments": ("count",),
    "pipeline.scheduling": (
        "backfill",
        "pause_schedule",
        "resume_schedule",
        "run_schedule",
        "schedule",
        "schedules",
        "unschedule",
    ),
    "pipeline.store.database": ("engine",),
    "pipeline.store.gateway.callers": ("readable_errors",),
    "pipeline.store.gateway.results": ("JobStatus",),
    "pipeline.store.gateway.schedules": ("Schedule",),
    "pipeline.testing.dispatch": (
        "JobDispatcher",
        "JobHandler",
        "MemoryDispatcher",
        "TransactionDispatcher",
        "run_handler",
    ),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
