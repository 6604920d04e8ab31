"""What an application tests its workflows with."""

from pipeline.testing.dispatch import MemoryDispatcher, run_handler
from pipeline.testing.services import FakeServices

__all__ = ["FakeServices", "MemoryDispatcher", "run_handler"]
