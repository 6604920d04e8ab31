"""Dead letters over HTTP: by cause, a canary, the rest at a rate, or given up."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import psycopg

from pipeline.journey.submit import submit_many
from tests.place import Place

FIRST = "ValueError: 1 is no price (parse.py:12)"
SECOND = "ValueError: 2 is no price (parse.py:90)"


def fail(place: Place, workflow: str, *errors: str) -> list[UUID]:
    """Jobs that failed for good, each with its error, without a worker."""
    jobs = sorted(submit_many(None, workflow, [{"n": n} for n in range(len(errors))]))
    for job, error in zip(jobs, errors, strict=True):
        place.rows("SELECT pipeline.undeliverable(%s, 1, %s)", job, error)
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'failed' AND id = ANY (%s)", jobs) == len(
        jobs
    )
    return jobs


def groups(api: httpx.Client) -> dict[str, dict[str, Any]]:
    return {group["cause"]: group for group in api.get("/v1/dead").json()["items"]}


def test_failures_are_grouped_by_kind_of_error_and_place(place: Place, api: httpx.Client) -> None:
    """Numbers in a text do not make a group of their own; samples and hours come with it."""
    one, two, _ = fail(place, "single", FIRST, FIRST.replace("1 is", "7 is"), SECOND)
    fail(
        place,
        "triple",
        "poison pill after 3 crashes: worker host-12-34-ab3 died",
        "poison pill after 3 crashes: worker b-9 died",
        "",
    )
    found = groups(api)
    assert {cause: (group["phase"], group["jobs"]) for cause, group in found.items()} == {
        "ValueError at parse.py:12: # is no price": ("act", 2),
        "ValueError at parse.py:90: # is no price": ("act", 1),
        "poison pill after # crashes: worker # died": ("first", 2),
        "unknown": ("first", 1),
    }
    group = found["ValueError at parse.py:12: # is no price"]
    assert sum(hour["jobs"] for hour in group["over_time"]) == 2
    assert [UUID(sample["id"]) for sample in group["samples"]] == [two, one]
    assert all(json.loads(sample["body"]).keys() == {"n"} for sample in group["samples"])
    pages = [api.get("/v1/dead", params={"limit": 3}).json()]
    pages.append(api.get("/v1/dead", params={"limit": 3, "cursor": pages[0]["next"]}).json())
    assert [len(page["items"]) for page in pages] == [3, 1] and pages[1]["next"] is None
    assert len(api.get("/v1/dead", params={"workflow": "triple"}).json()["items"]) == 2


def test_groups_are_sorted_and_searched(place: Place, api: httpx.Client) -> None:
    """The most jobs first, or the newest failures; page by page, in the same order."""
    fail(place, "single", *["KeyError: a (a.py:1)"] * 2)
    fail(place, "triple", *["ValueError: b (b.py:2)"] * 3)
    place.db.execute("UPDATE pipeline.jobs SET completed_at = completed_at - interval '1 h'")
    fail(place, "single", "TypeError: c (c.py:3)")

    def causes(**query: str | int) -> list[str]:
        found, cursor = [], None
        while True:
            page = api.get("/v1/dead", params={"limit": 1, **query, **({"cursor": cursor} if cursor else {})}).json()
            found += [group["cause"].split()[0] for group in page["items"]]
            if (cursor := page["next"]) is None:
                return found

    assert causes() == ["ValueError", "KeyError", "TypeError"]
    assert causes(sort="newest")[0] == "TypeError"
    assert causes(sort="name") == ["KeyError", "TypeError", "ValueError"]
    assert causes(words="error at B.py") == ["ValueError"] and causes(words="nothing") == []


def test_one_goes_first_as_a_canary_and_the_rest_follow_at_the_rate_asked_for(place: Place, api: httpx.Client) -> None:
    """The rate is due times in PostgreSQL: oldest first, one every half second."""
    jobs = fail(place, "single", *[FIRST] * 6)
    group = groups(api)["ValueError at parse.py:12: # is no price"]["group"]
    listed = api.get("/v1/dead/jobs", params={"group": group, "limit": 4}).json()
    assert [UUID(item["id"]) for item in listed["items"]] == jobs[:1:-1]
    assert api.post("/v1/dead/replay", json={"ids": [str(jobs[3])] * 2}).json() == {"jobs": 1, "more": False}
    assert place.job(jobs[3])["status"] == "pending"
    answer = api.post("/v1/dead/replay", json={"group": group, "limit": 4, "per_second": 2})
    assert (answer.status_code, answer.json()) == (202, {"jobs": 4, "more": True})
    rest = [jobs[0], jobs[1], jobs[2], jobs[4]]
    due = [place.job(job)["next_retry_at"] for job in rest]
    assert [later - due[0] for later in due] == [timedelta(seconds=0.5 * n) for n in range(4)]
    assert place.count("SELECT count(*) FROM pipeline.outbox WHERE due_at IS NOT NULL AND reason = 'replay'") == 3
    assert place.job(jobs[5])["status"] == "failed"


def test_replayed_jobs_run_again_to_their_end(place: Place, api: httpx.Client) -> None:
    """With fresh budgets, at their time."""
    jobs = fail(place, "single", *[FIRST] * 3)
    group = groups(api)["ValueError at parse.py:12: # is no price"]["group"]
    api.post("/v1/dead/replay", json={"group": group, "per_second": 5})
    place.worker()
    assert {job["status"] for job in place.finished(*jobs)} == {"succeeded"}
    assert api.get("/v1/dead").json() == {"items": [], "next": None}


def test_discarded_jobs_leave_the_list_and_keep_the_reason(place: Place, api: httpx.Client) -> None:
    """They are cancelled; the error they had stays readable."""
    jobs = fail(place, "single", FIRST, FIRST, SECOND)
    wish = {"group": groups(api)["ValueError at parse.py:12: # is no price"]["group"], "reason": "the shop closed"}
    assert api.post("/v1/dead/discard", json=wish).json() == {"jobs": 2, "more": False}
    assert place.job(jobs[0])["error_message"] == f"the shop closed (was: {FIRST})"
    assert api.post("/v1/dead/discard", json={"ids": [str(jobs[0])], "reason": "again"}).json()["jobs"] == 0
    assert list(groups(api)) == ["ValueError at parse.py:90: # is no price"]


def test_two_operators_who_replay_the_same_jobs_start_each_once(place: Place, api: httpx.Client) -> None:
    """Whoever comes second finds them no longer failed."""
    jobs = fail(place, "single", *[FIRST] * 5)
    with psycopg.connect(place.database_url) as other:
        other.execute("SELECT pipeline.replay_many(%s::uuid[])", (jobs[:3],))
        other.commit()
    answer = api.post("/v1/dead/replay", json={"ids": [str(job) for job in jobs]})
    assert answer.json()["jobs"] == 2
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE send = 2") == 5


def test_ids_and_group_exclude_one_another(api: httpx.Client) -> None:
    """And one of them is needed."""
    job = "01a1e35a-acab-720d-861a-d34a819014b2"
    wishes: list[dict[str, object]] = [{}, {"ids": [job], "group": "x"}, {"ids": []}, {"group": "x"}]
    for wish in wishes:
        assert api.post("/v1/dead/replay", json=wish).status_code == 422, wish
