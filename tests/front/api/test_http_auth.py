"""Who may do what."""

from __future__ import annotations

import hashlib

import httpx
import pytest
from pydantic import SecretStr

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.front.api.http.guessing import TRIES
from pipeline.front.api.http.tokens import COOKIE, parse_tokens
from pipeline.front.api.serve import server
from pipeline.journey.submit import submit
from tests.place import Place

Bearer = dict[str, dict[str, str]]
JOB = {"workflow": "single"}
SECRET = "s3cret-token-of-the-operator"


def test_without_a_known_token_nothing_is_told(guarded: httpx.Client) -> None:
    """401 as a problem, and how to sign in. Health stays open."""
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic dXNlcg=="},
        {"Cookie": f"{COOKIE}=1.2.3"},
    ):
        for path in ("/v1/jobs", "/v1/stats", "/v1/dead", "/v1/workers", "/v1/batches", "/v1/events", "/metrics"):
            answer = guarded.get(path, headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), path
            assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.get("/healthz").status_code == guarded.get("/readyz").status_code == 200


def test_a_viewer_looks_and_an_operator_acts(place: Place, guarded: httpx.Client, bearer: Bearer) -> None:
    """Every change is 403 for a viewer, and nothing happens."""
    job = submit(None, "single")
    changes = [
        ("/v1/jobs", JOB),
        (f"/v1/jobs/{job}/cancel", {}),
        (f"/v1/jobs/{job}/replay", {}),
        ("/v1/dead/replay", {"ids": [str(job)]}),
        ("/v1/dead/discard", {"ids": [str(job)], "reason": "x"}),
    ]
    for path, body in changes:
        assert guarded.post(path, json=body, headers=bearer["viewer"]).status_code == 403, path
    assert place.count("SELECT count(*) FROM pipeline.jobs WHERE status = 'pending'") == 1
    assert guarded.get("/v1/jobs", headers=bearer["viewer"]).status_code == 200
    assert guarded.post("/v1/jobs", json=JOB, headers=bearer["operator"]).status_code == 202


def test_a_session_needs_the_header_for_changes_and_ends_with_its_cookie(guarded: httpx.Client, bearer: Bearer) -> None:
    """The cookie is strict; another site cannot send X-Pipeline."""
    token = bearer["operator"]["Authorization"].removeprefix("Bearer ")
    assert guarded.post("/v1/session", json={"token": "no such token here"}).status_code == 401
    signed = guarded.post("/v1/session", json={"token": token})
    assert signed.json() == {"role": "operator", "name": "operator", "open": False}
    flags = signed.headers["set-cookie"].lower()
    assert "httponly" in flags and "samesite=strict" in flags and token not in flags
    assert guarded.get("/v1/jobs").status_code == 200
    assert guarded.post("/v1/jobs", json=JOB).status_code == 403
    assert guarded.post("/v1/jobs", json=JOB, headers={"X-Pipeline": "1"}).status_code == 202
    assert guarded.delete("/v1/session").status_code == 204
    assert guarded.get("/v1/jobs").status_code == 401


def test_a_session_is_worth_nothing_forged_late_or_without_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking the token away ends it."""
    tokens = parse_tokens(SecretStr(f"viewer:{'v' * 20},operator:{SECRET}"))
    others = parse_tokens(SecretStr(f"viewer:{'v' * 20}"))
    assert tokens is not None and others is not None
    session = tokens.new_session(SECRET)
    assert tokens.holder_of_session(session) == ("operator", "operator")
    assert others.holder_of_session(session) is None
    end, rest = session.split(".", 1)
    assert tokens.holder_of_session(f"{int(end) + 1}.{rest}") is None
    monkeypatch.setattr("pipeline.front.api.http.tokens.time", lambda: float(end))
    assert tokens.holder_of_session(session) is None
    for nonsense in ("", ".", "..", "9" * 5000, "\udcff.x.y", "²." * 3):
        assert tokens.holder_of_session(nonsense) is None


def test_without_tokens_only_this_machine_is_served(place: Place, api: httpx.Client) -> None:
    """A name that leads here by DNS rebinding, a page of another site, an outside address: refused."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""):
        assert api.get("/v1/jobs", headers={"Host": host}).status_code == 403, host
    for host in ("localhost", "localhost:8080", "127.0.0.1", "[::1]:80"):
        assert api.get("/v1/jobs", headers={"Host": host}).status_code == 200, host
    for sign in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert api.post("/v1/jobs", json=JOB, headers=sign).status_code == 403, sign
    assert api.post("/v1/jobs", json=JOB, headers={"Origin": str(api.base_url)}).status_code == 202
    with pytest.raises(BadInput, match="PIPELINE_API_TOKENS"):
        server(settings.get(), "0.0.0.0", 0)
    server(settings.load(api_tokens=SecretStr(f"viewer:{SECRET}")), "0.0.0.0", 0)


@pytest.mark.parametrize(
    "wrong", ["admin:" + "x" * 20, "viewer:short", SECRET, f"viewer:{SECRET},", "viewer:" + "é" * 20]
)
def test_wrong_tokens_are_named_at_start_without_being_told(wrong: str) -> None:
    """The place in the list and the cure, never the token."""
    with pytest.raises(BadInput, match=r"entry [12] must look like") as told:
        parse_tokens(SecretStr(wrong))
    assert SECRET not in str(told.value)
    assert SECRET not in repr(parse_tokens(SecretStr(f"viewer:{SECRET}")))


def test_whoever_guesses_too_often_must_wait(guarded: httpx.Client, bearer: Bearer) -> None:
    """429 with Retry-After, for a right token too: an answer would say that the guess was right."""
    for _ in range(TRIES):
        assert guarded.get("/v1/session", headers={"Authorization": "Bearer wrong"}).status_code == 401
    for tried in (
        guarded.get("/v1/session", headers=bearer["operator"]),
        guarded.post("/v1/session", json={"token": "x"}),
    ):
        assert tried.status_code == 429 and 0 < int(tried.headers["retry-after"]) <= 60
    assert guarded.get("/healthz").status_code == 200


def test_a_token_may_be_configured_by_its_hash() -> None:
    """Then the settings do not hold it, and the hash itself opens nothing."""
    hashed = hashlib.sha256(SECRET.encode()).hexdigest()
    tokens = parse_tokens(SecretStr(f"operator:sha256:{hashed}"))
    assert tokens is not None and tokens.holder_of(SECRET) == ("operator", "operator")
    assert tokens.holder_of(hashed) is None and tokens.holder_of(f"sha256:{hashed}") is None
    assert tokens.holder_of_session(tokens.new_session(SECRET)) == ("operator", "operator")
