"""Which tests stay together in one process: those that share an expensive environment or servers of their own.

pytest-xdist's marker ``xdist_group`` writes the group into the test's id, which newer versions of pytest no longer take
from there: the groups would be ignored without a word. So the scheduler is told by path, through its own hook.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    "tests/broker/test_stock_node.py",
    "tests/crash/test_servers.py",
    "tests/host/",
    "tests/services/test_private_servers.py",
)


class Together(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Every test goes to whoever is free; those of a group to the same process, and groups first."""

    def _split_scope(self, nodeid: str) -> str:
        return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)


def scheduler(config: Any, log: Any) -> Together:
    return Together(config, log)
