"""pipeline.find_jobs: jobs by what is known of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.db import steps
from tests.db.steps import Db

NEWEST = UUID(int=2**128 - 1)
FIND = """SELECT * FROM pipeline.find_jobs(%(workflow)s, %(phase)s, %(status)s, %(tag)s, %(since)s, %(until)s, %(prefix)s,
    %(error)s, %(before)s, %(most)s, %(walk)s)"""
NOTHING = dict.fromkeys(("workflow", "phase", "status", "tag", "since", "until", "prefix", "error"))


def find(db: Db, **named: Any) -> list[UUID]:
    """All that match, page by page."""
    found: list[UUID] = []
    before = NEWEST
    while True:
        values = {**NOTHING, "before": before, "most": 2, "walk": 3, **named}
        row = db.execute(FIND, values).fetchall()[0]
        found += row["ids"]
        if len(row["ids"]) == values["most"]:
            before = row["ids"][-1]
        elif row["floor"] is not None:
            before = row["floor"]
        else:
            return found


def failed(db: Db, error: str, workflow: str = "single") -> UUID:
    hold = steps.held(db, workflow)
    steps.fail(db, hold, error)
    return hold.job


def test_jobs_are_found_by_a_text_in_their_error(database: Db) -> None:
    """In any case, and nothing in it is a pattern; page by page, however far apart they are."""
    first = failed(database, "ValueError: No Price")
    others = [failed(database, "KeyError: x") for _ in range(5)]
    last = failed(database, "ValueError: no price at 100%")
    assert find(database, error="no price") == [last, first]
    assert find(database, error="100%", status="failed") == [last]
    assert find(database, error="e_r") == [] and len(find(database, error="keyerror")) == len(others)


def test_jobs_are_found_by_the_beginning_of_their_id(database: Db) -> None:
    """With or without dashes, in any case; the whole of it, too."""
    jobs = [steps.submit(database) for _ in range(5)]
    whole = jobs[2].hex
    assert find(database, prefix=whole) == [jobs[2]] == find(database, prefix=str(jobs[2]).upper())
    assert set(find(database, prefix=whole[:8])) == {job for job in jobs if job.hex.startswith(whole[:8])}
    assert find(database, prefix="ffff") == []
    assert find(database, prefix=whole, before=jobs[1]) == []


def test_jobs_are_found_by_when_they_were_submitted(database: Db) -> None:
    """Their ids are in the order of time."""
    old, new = steps.submit(database), steps.submit(database)
    at = steps.one(database, "SELECT now() + interval '1 s'")
    assert find(database, until=at) == [new, old] and find(database, since=at) == []
    assert (
        find(database, since=at.replace(year=2020)) == [new, old] and find(database, until=at.replace(year=2020)) == []
    )


def test_what_is_unfinished_is_waiting_or_running(database: Db) -> None:
    """And is found by its other marks at the same time."""
    ended = failed(database, "no")
    running = steps.held(database).job
    waiting = steps.submit(database, "triple", tags=["vip"])
    assert find(database, status="unfinished") == [waiting, running] and ended not in find(
        database, status="unfinished"
    )
    assert find(database, status="unfinished", workflow="single") == [running]
    assert find(database, status="unfinished", tag="vip") == [waiting]
    assert find(database, status="unfinished", phase="second") == []


def test_without_a_filter_all_are_found(database: Db) -> None:
    """Newest first, each once."""
    jobs = [steps.submit(database) for _ in range(7)]
    assert find(database) == jobs[::-1] and find(database, most=100) == jobs[::-1]
