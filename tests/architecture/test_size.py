"""Files stay short: one that grows past 300 lines is usually two."""

from __future__ import annotations

from tests.architecture.house import files, text

LIMIT = 300

WALK = "a job passes it: fourteen files to read, and not forty (docs/walk.md)"
LONGER = {
    "pipeline/broker/inbound.py": WALK,
    "pipeline/broker/outbound.py": WALK,
    "pipeline/declare/job.py": "what a user writes against: half of it says what each call guarantees",
    "pipeline/workflow.py": "what a user declares with: half of it says what each option means",
    "pipeline/journey/attempt.py": WALK,
    "pipeline/journey/submit.py": "what applications call: half of it says what each option means, and who may call",
    "pipeline/store/group_commit.py": WALK,
    "pipeline/worker/process.py": WALK,
    "chaos/reconcile.py": "the books: what they have, and each judgement of it",
    "tests/db/test_names_in_full.py": "one tour of all functions",
    "tests/db/test_gateway.py": "one test for each statement of the gateway",
    "tests/flow/test_the_fourteen_rules.py": "one test for each rule of the protocol, in their order",
}


def test_a_long_file_is_on_the_list_with_its_reason() -> None:
    """Python and SQL; the list is short and stays so."""
    long = {str(path) for path in files(".py", ".sql") if len(text(path).splitlines()) > LIMIT}
    assert long <= set(LONGER), f"split these, or say why not: {sorted(long - set(LONGER))}"


def test_the_list_names_no_file_that_became_short_or_left() -> None:
    """A reason that is no longer needed goes."""
    long = {str(path) for path in files(".py", ".sql") if len(text(path).splitlines()) > LIMIT}
    assert set(LONGER) <= long


def test_no_file_is_a_drawer_for_anything() -> None:
    """Names say what is in a file."""
    drawers = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}
    assert not [str(path) for path in files(".py") if path.stem in drawers]
