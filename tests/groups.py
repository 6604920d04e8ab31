"""Which tests stay together in one process: those that share an expensive environment or servers of their own.

And which go first: one that takes long and begins last would keep one process busy while the others have nothing to do.

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

# Those of a module share a browser; starting one costs more than most of them.
WITH_A_BROWSER = "tests/front/dashboard/"

# A quarter of a minute and more on two processors, the longest first.
LONG = (
    WITH_A_BROWSER,
    "tests/front/api/test_http_schema.py::test_no_answer_is_a_5xx_or_undocumented[operator]",
    "tests/docs/test_waits.py::test_the_refund_goes_each_of_its_ways",
    "tests/crash/test_recovery.py::test_jobs_survive_kills_of_workers",
    "tests/defaults/test_stuck_with_defaults.py::",
    "tests/crash/test_recovery.py::test_a_frozen_workers_late_completion_changes_nothing",
    "tests/defaults/test_recovery_with_defaults.py::",
    "tests/testing/test_same_on_servers.py::",
    "tests/crash/test_steps_survive_kills.py::",
    "tests/testing/test_steps.py::",
    "tests/docs/test_tutorial.py::",
    "tests/docs/test_compose.py::",
    "tests/flow/test_reconcile.py::",
    "tests/measured/test_scans.py::",
    "tests/actors/document/test_document_end_to_end.py::",
    "tests/broker/test_many_workflows.py::",
    "tests/flow/test_bad_input.py::test_the_command_line_follows_a_job_from_submit_to_dead_and_back",
    "tests/flow/test_event_loop.py::",
    "tests/db/test_machine.py::test_any_order_of_steps_keeps_the_rules",
    "tests/docs/test_test_your_workflow.py::",
    "tests/docs/test_extend.py::",
    "tests/testing/test_waits.py::",
)


def turn(nodeid: str) -> int:
    """A test's place in the order of the run; those with the same are left in theirs."""
    return next((place for place, test in enumerate(LONG) if nodeid.startswith(test)), len(LONG))


class Together(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Every test goes to whoever is free; those of a group to the same process, and groups first."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(WITH_A_BROWSER):
            return nodeid.partition("::")[0]
        return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)


def scheduler(config: Any, log: Any) -> Together:
    return Together(config, log)
