"""Workflows that only some tests of a process may know: those of pages have the same names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.declare import registry
from pipeline.declare.registry import DeclaredWorkflow


@contextmanager
def apart() -> Iterator[dict[str, DeclaredWorkflow]]:
    """What is imported in here is not declared afterwards; the dictionary has it then."""
    before, found = registry.workflows(), dict[str, DeclaredWorkflow]()
    yield found
    found |= {name: one for name, one in registry.workflows().items() if name not in before}
    for name in found:
        del registry._workflows[name]
