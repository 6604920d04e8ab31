"""A durable job pipeline: phases on Dramatiq and RabbitMQ, PostgreSQL the truth about every job."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.flow.dispatch import JobDispatcher, JobHandler, MemoryDispatcher, TransactionDispatcher, run_handler
    from pipeline.flow.job import Job
    from pipeline.flow.submit import cancel, open_batch, retry, seal_batch, submit, submit_many
    from pipeline.flow.workflow import Workflow
    from pipeline.rules.backoff import Backoff, exponential
    from pipeline.rules.errors import Permanent, Transient, Wait
    from pipeline.rules.outcome import Done
    from pipeline.rules.phase import Throttle

_HOMES = {
    "Job": "flow.job", "Workflow": "flow.workflow", "Done": "rules.outcome", "Throttle": "rules.phase",
    "Backoff": "rules.backoff", "exponential": "rules.backoff",
    "Permanent": "rules.errors", "Transient": "rules.errors", "Wait": "rules.errors",
    "submit": "flow.submit", "submit_many": "flow.submit", "cancel": "flow.submit", "retry": "flow.submit",
    "JobDispatcher": "flow.dispatch", "JobHandler": "flow.dispatch", "MemoryDispatcher": "flow.dispatch",
    "TransactionDispatcher": "flow.dispatch", "run_handler": "flow.dispatch",
    "open_batch": "flow.submit", "seal_batch": "flow.submit",
}  # fmt: skip

__all__ = [
    "Backoff", "Done", "Job", "JobDispatcher", "JobHandler", "MemoryDispatcher", "Permanent", "Throttle",
    "TransactionDispatcher", "Transient", "Wait", "Workflow", "cancel", "exponential", "open_batch", "retry",
    "run_handler", "seal_batch", "submit", "submit_many",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Resolved at first use, so that the sandbox or a client does not load a whole worker.
    if name in _HOMES:
        return getattr(import_module(f"pipeline.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
