"""Schedules over HTTP: list, put, steer and delete; every refusal says what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import httpx
import pytest

from pipeline.maintenance.schedules import Schedules
from pipeline.store.engine import connect
from tests.place import Place

PATH = "/v1/schedules/shop-orders/weekly"
WEEKLY = {"cron": "0 7 * * 1", "timezone": "Europe/Paris", "body": {"order": 17}, "overlap": "skip"}


def look(place: Place) -> None:
    """What the leader of maintenance does."""
    with connect(place.database_url, "test") as connection:
        leader = Schedules()
        while not leader.look(connection):
            pass


def put(api: httpx.Client, path: str = PATH, **wish: Any) -> Any:
    answer = api.put(path, json={**WEEKLY, **wish})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_schedule_is_put_shown_changed_and_deleted(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """With defaults where nothing was said; its body as its workflow has it."""
    made = put(api)
    assert made | WEEKLY | {"body": made["body"]} == made and made["body"]["order"] == 17
    assert (made["source"], made["catch_up"], made["catch_up_for"], made["next_at"]) == ("run time", 1, None, None)
    look(place)
    shown = api.get(PATH).json()
    moment = datetime.fromisoformat(shown["next_at"])
    assert moment > datetime.now(UTC) and moment.astimezone(UTC).weekday() == 0
    changed = put(api, cron=None, timezone=None, every=90.0, catch_up_for=60.0)
    assert (changed["cron"], changed["every"], changed["catch_up"], changed["catch_up_for"]) == (None, 90, None, 60)
    assert api.delete(PATH).status_code == 204
    for answer in (api.get(PATH), api.delete(PATH), api.post(f"{PATH}/pause"), api.post(f"{PATH}/run")):
        assert (answer.status_code, answer.json()["title"]) == (404, "No such schedule")


def test_schedules_come_in_pages(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """In the order of their names; of one workflow, if asked for."""
    for path in ("/v1/schedules/single/b", "/v1/schedules/shop-orders/z", "/v1/schedules/single/a"):
        put(api, path)
    found, query = [], "?limit=2"
    while True:
        page = api.get(f"/v1/schedules{query}").json()
        found.append([f"{one['workflow']}.{one['name']}" for one in page["items"]])
        if page["next"] is None:
            break
        query = f"?limit=2&cursor={page['next']}"
    assert found == [["shop-orders.z", "single.a"], ["single.b"]]
    assert len(api.get("/v1/schedules?workflow=single").json()["items"]) == 2


def test_a_schedule_is_paused_resumed_and_run(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """A second pause changes nothing; the job of a run is there at once."""
    put(api)
    assert [api.post(f"{PATH}/pause").json()["changed"] for _ in range(2)] == [True, False]
    assert api.get(PATH).json()["paused_at"] is not None
    run = api.post(f"{PATH}/run")
    assert run.status_code == 202 and api.get(run.headers["Location"]).json()["job"]["tags"] == ["schedule:weekly"]
    assert [api.post(f"{PATH}/resume").json()["changed"] for _ in range(2)] == [True, False]


def test_a_backfill_is_accepted_and_done_in_the_background(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    """Its jobs are found by the schedule's tag."""
    put(api, overlap="allow")
    until = datetime.now(UTC)
    wish = {"from": (until - timedelta(days=28)).isoformat(), "until": until.isoformat()}
    answer = api.post(f"{PATH}/backfill", json=wish)
    assert answer.status_code == 202 and answer.json()["backfill_until"] is not None
    again = api.post(f"{PATH}/backfill", json=wish)
    assert again.status_code == 422 and "is under way" in again.json()["detail"]
    look(place)
    assert len(api.get("/v1/jobs?workflow=shop-orders&tag=schedule:weekly").json()["items"]) == 4


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"cron": "0 25 * * *"}, "bad hour"),
        ({"timezone": "Europe/Pariss"}, "there is no time zone"),
        ({"every": 60.0, "timezone": None}, "either a cron expression or every="),
        ({"every": 0.5, "cron": None, "timezone": None}, "whole seconds"),
        ({"overlap": "maybe"}, "overlap"),
        ({"catch_up": 1, "catch_up_for": 60.0}, "either catch_up or catch_up_for"),
        ({"body": {"order": "x"}}, "body.body.order"),
        ({"tags": "vip"}, "tags"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_cannot_be_meant_is_refused(api: httpx.Client, shop: ModuleType, wish: dict[str, Any], said: str) -> None:
    """As a problem, and nothing is there afterwards."""
    answer = api.put(PATH, json={**WEEKLY, **wish})
    assert answer.status_code == 422 and answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]
    assert api.get("/v1/schedules").json()["items"] == []


def test_what_is_declared_in_code_is_changed_there(place: Place, shop: ModuleType, api: httpx.Client) -> None:
    put(api)
    place.db.execute("UPDATE pipeline.schedules SET source = 'code'")
    for answer in (api.put(PATH, json=WEEKLY), api.delete(PATH)):
        assert answer.status_code == 422 and "is declared in code" in answer.json()["detail"]
    assert api.post(f"{PATH}/pause").json()["changed"]
