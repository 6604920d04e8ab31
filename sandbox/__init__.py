"""A local stand-in for the outside world: real HTTP, deterministic answers, faults on request.

It imports nothing of the engine, so that whatever the two agree on has gone over the wire.
"""

from sandbox.app import app
from sandbox.server import Sandbox, running_sandbox

__all__ = ["Sandbox", "app", "running_sandbox"]
