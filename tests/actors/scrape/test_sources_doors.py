"""``pipeline sources`` and ``/v1/sources``: the same three things through two doors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import typer
from typer.testing import CliRunner

from actors.scrape.commands import add_to
from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.front.api.serve import server
from tests.actors.scrape.stall import Stall

app = typer.Typer()
add_to(app)


@contextmanager
def serving(quiet: Stall, **headers: str) -> Iterator[httpx.Client]:
    """A real server on a free port, with the settings of this moment."""
    one = server(settings.load(), "127.0.0.1", 0)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()
    try:
        quiet.place.until(lambda: one.started, 20, "the server")
        port = one.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20) as client:
            yield client
    finally:
        one.should_exit = True
        thread.join(20)


def test_the_command_lists_pauses_and_resumes(quiet: Stall) -> None:
    """By name, with JSON for scripts, and a sentence for a name that is wrong."""
    quiet.source("coins")
    quiet.collect(quiet.intake(), ["coins", "coins"])
    run = CliRunner().invoke
    assert "until it is resumed" in run(app, ["sources", "pause", "coins"]).output
    [listed] = json.loads(run(app, ["sources", "list", "--json"]).output)
    assert (listed["state"], listed["pause_reason"], listed["waiting"]) == ("paused", "operator", 2)
    assert "paused (operator)" in run(app, ["sources", "list"], env={"COLUMNS": "200"}).output
    assert "2 jobs go out at 600000 a minute" in run(app, ["sources", "resume", "coins"]).output
    assert "for 5 min" in run(app, ["sources", "pause", "coins", "--minutes", "5"]).output
    wrong = run(app, ["sources", "resume", "coin"])
    assert isinstance(wrong.exception, BadInput) and "known sources: coins" in str(wrong.exception)


def test_the_api_lists_pauses_and_resumes(quiet: Stall) -> None:
    """Pausing holds for the seconds asked for, or until it is resumed."""
    quiet.source("coins")
    with serving(quiet) as client:
        assert [source["state"] for source in client.get("/v1/sources").json()] == ["closed"]
        paused = client.post("/v1/sources/coins/pause", json={"seconds": 60}).json()
        assert (paused["state"], paused["pause_reason"]) == ("paused", "operator")
        assert client.post("/v1/sources/coins/pause").json()["paused_until"] > "2100"
        resumed = client.post("/v1/sources/coins/resume").json()
        assert (resumed["state"], resumed["paused_until"]) == ("closed", None)
        missing = client.post("/v1/sources/nowhere/pause")
        assert missing.status_code == 404 and missing.headers["content-type"] == "application/problem+json"
        for seconds in (0, -1, 1e12, "soon"):
            assert client.post("/v1/sources/coins/pause", json={"seconds": seconds}).status_code == 422


def test_prices_that_could_not_be_read_are_shown_with_their_reasons(quiet: Stall) -> None:
    """By command, by HTTP, as a metric; counted by reason, the latest first."""
    quiet.source("coins")
    intake = quiet.intake()
    for text, reason in (("120 kr", "unknown currency"), ("99 kr", "unknown currency"), ("$10 to $25 [b]", "range")):
        quiet.place.db.execute(
            "INSERT INTO unread_prices (intake_id, source_id, title, url, price_text, reason, detail, last_seen_at)"
            " VALUES (%s, 'coins', 'cent', 'https://m.example/', %s, %s, 'why', clock_timestamp())",
            (intake, text, reason),
        )
    run = CliRunner().invoke
    told = json.loads(run(app, ["sources", "unread", "coins", "--json"]).output)
    assert told["reasons"] == {"unknown currency": 2, "range": 1}
    assert [price["price_text"] for price in told["prices"]] == ["$10 to $25 [b]", "99 kr", "120 kr"]
    shown = run(app, ["sources", "unread", "coins", "--reason", "range"], env={"COLUMNS": "200"}).output
    assert "2 unknown currency, 1 range" in shown and "$10 to $25 [b]" in shown and "99 kr" not in shown
    assert "pipeline sources currency coins USD" in shown
    assert "is CAD" in run(app, ["sources", "currency", "coins", "cad"]).output
    assert "sources currency" not in run(app, ["sources", "unread", "coins"]).output
    assert isinstance(run(app, ["sources", "currency", "coins", "dollars"]).exception, BadInput)
    with serving(quiet) as client:
        assert client.get("/v1/sources").json()[0]["currency"] == "CAD"
        assert client.get("/v1/sources").json()[0]["unread"] == 3
        found = client.get("/v1/sources/coins/unread", params={"reason": "range"}).json()
        assert [price["price_text"] for price in found["prices"]] == ["$10 to $25 [b]"]
        assert client.get("/v1/sources/nowhere/unread").status_code == 404
        assert 'pipeline_unread_prices{reason="unknown currency",source="coins"} 2.0' in client.get("/metrics").text


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("v" * 24, 403), ("o" * 24, 200)])
def test_only_operators_pause(quiet: Stall, monkeypatch: pytest.MonkeyPatch, token: str | None, status: int) -> None:
    """With tokens set, looking takes any of them, pausing an operator's."""
    quiet.source("coins")
    monkeypatch.setenv("PIPELINE_API_TOKENS", f"viewer:{'v' * 24},operator:{'o' * 24}")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with serving(quiet, **headers) as client:
        assert client.post("/v1/sources/coins/pause").status_code == status
        assert client.get("/v1/sources").status_code == (401 if token is None else 200)
