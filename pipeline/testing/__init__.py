"""What an application tests its workflows with: in memory, or on private servers of the test's own.

>>> with in_memory() as run:
...     job = run.submit(orders, {"order": 17})
...     run.drain()
...     assert job.status == "succeeded"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.testing.dispatch import MemoryDispatcher, run_handler
    from pipeline.testing.memory.run import CollectedWrite, MemoryRun, in_memory
    from pipeline.testing.run import AttemptRecord, JobRecord, Run
    from pipeline.testing.services import FakeServices

__all__ = [
    "AttemptRecord",
    "CollectedWrite",
    "FakeServices",
    "JobRecord",
    "MemoryDispatcher",
    "MemoryRun",
    "Run",
    "in_memory",
    "run_handler",
]

# Resolved at first use: pytest imports this package for everybody who has the engine installed.
_HOMES = {
    "AttemptRecord": "run",
    "CollectedWrite": "memory.run",
    "FakeServices": "services",
    "JobRecord": "run",
    "MemoryDispatcher": "dispatch",
    "MemoryRun": "memory.run",
    "Run": "run",
    "in_memory": "memory.run",
    "run_handler": "dispatch",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"pipeline.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'pipeline.testing' has no attribute {name!r}")
