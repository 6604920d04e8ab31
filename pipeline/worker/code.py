"""What people are told of a process: which code it runs, and how much memory it takes."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from pathlib import Path

from pipeline.declare.registry import workflows

PAGE = os.sysconf("SC_PAGE_SIZE")


@lru_cache(maxsize=1)
def code_version() -> str:
    """The engine's version, and a digest of the files in which the workflows are declared.

    Two workers with the same one run the same phases; what these import may differ all the same.
    """
    declared = workflows().values()
    modules = {phase.work.__module__ for workflow in declared for phase in workflow.phases}
    modules |= {workflow.module for workflow in declared}
    digest = hashlib.sha256()
    for name in sorted(modules):
        file = getattr(sys.modules.get(name), "__file__", None)
        digest.update(name.encode())
        digest.update(Path(file).read_bytes() if file and Path(file).is_file() else b"")
    # The package itself imports what stands above a worker.
    engine: str = sys.modules["pipeline"].__version__
    return f"{engine}+{digest.hexdigest()[:8]}"


def resident_memory() -> int | None:
    """Bytes of this process that are in memory, without its children; None where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except OSError:
        return None
