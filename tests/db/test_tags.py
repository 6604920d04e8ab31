"""Tags: stored with a job, and an index of jobs in the order of time."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.db import steps
from tests.db.steps import Db

LAST = UUID(int=2**128 - 1)
LIST = "SELECT ids, floor FROM pipeline.list_jobs(%s, %s, %s, %s, %s, %s, %s)"


def tagged(
    db: Db,
    tag: str,
    *,
    status: str | None = None,
    before: UUID = LAST,
    most: int = 10,
    walk: int = 20000,
    workflow: str | None = None,
) -> tuple[list[UUID], UUID | None]:
    [row] = steps.rows(db, LIST, workflow, None, status, before, most, walk, tag)
    return row["ids"], row["floor"]


def test_jobs_are_found_by_a_tag_newest_first(database: Db) -> None:
    """With the other filters, page by page."""
    jobs = [steps.submit(database, tags=["vip", "eu"] if n % 2 else ["eu"]) for n in range(6)]
    other = steps.submit(database, "triple", tags=["vip"])
    steps.submit(database)
    assert tagged(database, "vip") == ([other, *jobs[5::-2]], None)
    assert tagged(database, "vip", workflow="single", most=2) == ([jobs[5], jobs[3]], None)
    assert tagged(database, "vip", before=jobs[3]) == ([jobs[1]], None)
    assert tagged(database, "us") == ([], None)
    steps.complete(database, steps.hold(database, jobs[3]))
    assert tagged(database, "eu", status="succeeded") == ([jobs[3]], None)
    assert steps.job(database, jobs[1])["tags"] == ["vip", "eu"]


def test_a_walk_is_bounded_and_says_where_it_ended(database: Db) -> None:
    """A page can be short, and still not be the last."""
    jobs = [steps.submit(database, tags=["eu"]) for _ in range(5)]
    assert tagged(database, "eu", status="failed", walk=2) == ([], jobs[3])
    assert tagged(database, "eu", before=jobs[3], walk=2, most=1) == ([jobs[2]], jobs[1])


def test_a_page_reads_the_index_of_its_tag_alone(database: Db) -> None:
    """Neither the other jobs nor those of the tag that are older."""
    for tag in ("eu", "us"):
        values = f"array_fill('{{}}'::jsonb, ARRAY[5000]), p_tags => ARRAY['{tag}']"
        database.execute(f"SELECT count(*) FROM pipeline.submit_many('single', {values})")
    database.execute("VACUUM ANALYZE pipeline.jobs, pipeline.tags")
    with database.transaction():
        before = reads(database)
        assert len(tagged(database, "eu", most=50)[0]) == 50
        after = reads(database)
    assert after["scanned"] == before["scanned"]
    assert after["fetched"] - before["fetched"] <= 100


def reads(db: Db) -> dict[str, Any]:
    [row] = steps.rows(
        db,
        """SELECT pg_stat_get_xact_numscans('pipeline.jobs'::regclass) + pg_stat_get_xact_numscans('pipeline.tags'::regclass) AS scanned,
               pg_stat_get_xact_tuples_fetched('pipeline.jobs'::regclass) AS fetched""",
    )
    return row


def test_tags_go_with_their_job(database: Db) -> None:
    """And a job without tags writes none."""
    job = steps.submit(database, tags=["vip", "vip", "eu"])
    steps.submit(database, tags=[])
    assert steps.one(database, "SELECT count(*) FROM pipeline.tags") == 2
    database.execute("SELECT pipeline.delete(%s)", ([job],))
    assert steps.rows(database, "SELECT * FROM pipeline.tags") == []


@pytest.mark.parametrize("tags", [["x"] * 21, [""], ["x" * 65], ["a", None]])
def test_too_many_and_too_long_ones_are_refused(database: Db, tags: list[Any]) -> None:
    """SQLSTATE PL008; twenty of 64 characters are taken."""
    with steps.nothing_changes(database), pytest.raises(psycopg.Error) as caught:
        steps.submit(database, tags=tags)
    assert caught.value.sqlstate == "PL008" and "tag" in (caught.value.diag.message_primary or "")
    steps.submit(database, tags=[f"{n:064}" for n in range(20)])
