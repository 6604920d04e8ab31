"""G10: the API and the command line do not wait for a row that another transaction holds, and say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
import psycopg
import pytest

from pipeline import submit
from tests.commands import pipeline_here
from tests.front.api.test_http_dead import FIRST, fail
from tests.place import Place

HOLDS = "another transaction holds a row"


@contextmanager
def held(place: Place, *jobs: UUID) -> Iterator[None]:
    """An application's open transaction on these jobs."""
    with psycopg.connect(place.database_url) as other:
        other.execute("SELECT 1 FROM pipeline.jobs WHERE id = ANY (%s) FOR UPDATE", (list(jobs),))
        yield
        other.rollback()


def test_the_api_answers_409_and_the_same_request_works_afterwards(place: Place, api: httpx.Client) -> None:
    """Each request that changes a job; other jobs are not concerned."""
    [failed], waits, free = fail(place, "single", FIRST), submit(None, "single"), submit(None, "single")
    wishes = [
        (f"/v1/jobs/{waits}/cancel", None),
        (f"/v1/jobs/{failed}/replay", None),
        ("/v1/dead/discard", {"ids": [str(failed)], "reason": "gone"}),
    ]
    with held(place, waits, failed):
        for path, body in wishes:
            refused = api.post(path, json=body)
            assert (refused.status_code, refused.headers["Retry-After"]) == (409, "2")
            assert refused.json()["detail"].startswith(f"nothing was changed: {HOLDS}")
        assert api.post(f"/v1/jobs/{free}/cancel").status_code == 200
    assert [api.post(path, json=body).status_code for path, body in wishes] == [200, 202, 200]


@pytest.mark.parametrize("words", [("cancel",), ("dead", "replay"), ("dead", "discard", "--reason", "gone")])
def test_a_command_gives_up_and_says_why(place: Place, words: tuple[str, ...]) -> None:
    """Exit code 1, as for everything else that cannot be done; it works once the other transaction has ended."""
    job = submit(None, "single") if words == ("cancel",) else fail(place, "single", FIRST)[0]
    with held(place, job):
        refused = pipeline_here(place, *words, str(job))
        assert (refused.returncode, HOLDS in refused.stderr) == (1, True), refused.stderr
    assert pipeline_here(place, *words, str(job)).returncode == 0


def test_a_key_that_another_transaction_uses_is_not_waited_for(place: Place) -> None:
    """Whether there is a job of that key is not known before the other transaction ends."""
    with psycopg.connect(place.database_url) as other:
        row = other.execute("SELECT pipeline.submit('single', '{}', p_key => 'order-17')").fetchone()
        refused = pipeline_here(place, "submit", "single", "{}", "--key", "order-17")
        assert (refused.returncode, HOLDS in refused.stderr) == (1, True), refused.stderr
    again = pipeline_here(place, "submit", "single", "{}", "--key", "order-17", "--json")
    assert row is not None
    assert json.loads(again.stdout)["id"] == str(row[0])
