"""Limits over HTTP: listed for viewers, set, paused and resumed by operators."""

from __future__ import annotations

import httpx

from tests.front.api.test_http_control import entries
from tests.place import Place


def listed(client: httpx.Client) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in client.get("/v1/limits").json()}


def test_a_limit_is_listed_set_paused_and_resumed(place: Place, api: httpx.Client) -> None:
    """Whoever did it is in the audit; a rate that is none, and a limit that nobody has, are refused."""
    place.db.execute("SELECT pipeline.declare_rate_limit('http-api', 5, 10)")
    assert (
        api.post("/v1/limits/set", json={"name": "http-api", "rate": "30/min", "burst": 2}).json()["name"] == "http-api"
    )
    found = listed(api)["http-api"]
    assert (found["rate"], found["burst"], found["declared_rate"], found["rate_is_set"]) == (0.5, 2, 5, True)
    assert api.post("/v1/limits/set", json={"name": "http-api", "declared": True}).status_code == 200
    assert listed(api)["http-api"]["rate"] == 5
    assert api.post("/v1/limits/pause", json={"name": "http-api"}).status_code == 200
    found = listed(api)["http-api"]
    assert (found["paused"], found["paused_until"], found["pause_reason"]) == (True, None, "paused")
    for was_paused in (True, False):
        assert api.post("/v1/limits/resume", json={"name": "http-api"}).json()["was_paused"] is was_paused
    assert api.post("/v1/limits/set", json={"name": "http-api", "rate": "fast"}).status_code == 422
    assert api.post("/v1/limits/set", json={"name": "nobody", "declared": True}).status_code == 404
    assert len(entries(api, subject="http-api")) == 5


def test_an_open_breaker_is_listed_with_its_limit(place: Place, api: httpx.Client) -> None:
    place.db.execute("SELECT pipeline.breaker_failed('http-bazaar', pipeline.new_id(), 1, 1, 'ConnectError: refused')")
    place.db.execute("SELECT pipeline.breaker_open('http-bazaar', pipeline.new_id(), 60)")
    found = listed(api)["http-bazaar"]
    assert (found["breaker"], found["failures"], found["pause_reason"]) == ("open", 1, "breaker")
    assert found["last_error"] == "ConnectError: refused"
