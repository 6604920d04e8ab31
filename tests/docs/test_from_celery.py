"""docs/howto/from-celery.md: every block of ours, in the order of the page, in memory."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from pipeline import JobCancelled
from pipeline.declare import registry
from pipeline.declare.registry import workflows
from pipeline.testing import in_memory
from tests.docs.blocks import blocks
from tests.place import ROOT

PAGE = ROOT / "docs/howto/from-celery.md"


def test_every_block_of_ours_does_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """One module, made of the page's blocks. Retries, an hour, children, hooks and a rollback happen in the run."""
    monkeypatch.setattr(registry, "_workflows", dict(workflows()))
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (item text PRIMARY KEY)"))
    with in_memory(engine=engine) as run:
        monkeypatch.setitem(sys.modules, "from_celery", ModuleType("from_celery"))
        page: dict[str, Any] = sys.modules["from_celery"].__dict__
        ours = [block.text for block in blocks(PAGE) if block.kind == "python" and block.mark != "celery"]
        assert len(ours) == len([block for block in blocks(PAGE) if block.mark == "celery"]), "side by side"
        for block in ours:
            exec(compile(block, str(PAGE), "exec", dont_inherit=True), page)
        run.drain()

        wrong, paid = run.job(page["wrong"]), run.job(page["paid"])
        assert (wrong.status, wrong.outcomes) == ("failed", [("charge", "failed")])
        assert paid.status == "retryable" and "the bank does not answer" in str(paid.error)
        page["bank"].update(open=True, calls=1)
        run.advance(seconds=11)
        run.drain()
        assert paid.wait_reason == "snoozed"
        run.advance(minutes=1)
        run.drain()
        assert paid.result == f"charged with {paid.id}:charge"

        assert (page["value"], page["same"], page["state"]) == (5, 5, "succeeded")
        assert page["kept"].result() == len("https://example.org")
        assert page["small"] == page["pictures"].result() == ["a.small.png", "b.small.png"]
        assert page["converted"].result() == "A.DOC"
        assert page["called"].result() == "called https://example.org"
        assert page["total"].result() == sum(2 * number for number in range(250))
        begun, told = page["log"]
        assert begun == "begins load" and told.startswith("imports failed: Permanent: the file is empty")

        assert page["cancelled"]
        with pytest.raises(JobCancelled, match="the order was paid"):
            page["soon"].result()
        run.advance(hours=4)
        run.drain()
        assert run.job(page["late"]).outcomes == [("remind", "expired")]

        first = page["place_order"](engine, "a lamp")
        with pytest.raises(Exception, match="UNIQUE"):
            page["place_order"](engine, "a lamp")
        assert [job.id for job in run.jobs("charges")][2:] == [first.id], "the second rolled back"
    declared = workflows()["audits"].schedules
    assert sorted(schedule.name for schedule in declared) == ["often", "weekly"]
    assert workflows()["geocoding"].phases[0].spec.throttle is not None
