"""pipeline.cause: failures of one cause share a name, and those of another do not."""

from __future__ import annotations

import pytest

from tests.db import steps
from tests.db.steps import Db


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ValueError: 1 is no price (parse.py:12)", "ValueError at parse.py:12: # is no price"),
        (
            "HTTPStatusError 404: https://shop.test/a/1 answered 404 Not Found (shop.py:31)",
            "HTTPStatusError 404 at shop.py:31: # answered # Not Found",
        ),
        ("KeyError: 'price of item' (parse.py:9)", "KeyError at parse.py:9: …"),
        ("Permanent: Wikidata answered 503 and then nothing", "Permanent 503: Wikidata answered # and then nothing"),
        ("Transient: cannot open /srv/data/a.pdf (files.py:7)", "Transient at files.py:7: cannot open #"),
        (
            "poison pill after 3 crashes: the child process was killed by SIGSEGV (native.py:8)",
            "native.py:8: poison pill after # crashes: the child process was killed by SIGSEGV",
        ),
        ("poison pill after 3 crashes: worker host-12-34-ab3 died", "poison pill after # crashes: worker # died"),
        ("ValueError: it isn't there, it wasn't here (a.py:1)", "ValueError at a.py:1: it isn't there, it wasn't here"),
        ("", "unknown"),
    ],
)
def test_a_cause_is_kind_status_place_and_what_was_said(database: Db, error: str, cause: str) -> None:
    """What differs from job to job is left out."""
    assert steps.one(database, "SELECT pipeline.cause(%s)", error) == cause


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "HTTPStatusError 404: https://a.test answered 404 Not Found (client.py:70)",
            "HTTPStatusError 503: https://a.test answered 503 Service Unavailable (client.py:70)",
        ),
        ("ValueError: no price (parse.py:12)", "ValueError: no currency (parse.py:12)"),
        (
            "poison pill after 3 crashes: the child process was killed by SIGSEGV",
            "poison pill after 3 crashes: memory limit of 1000 bytes exceeded",
        ),
    ],
)
def test_other_causes_have_other_names(database: Db, one: str, other: str) -> None:
    """A status, a sentence, a death."""
    assert steps.one(database, "SELECT pipeline.cause(%s) <> pipeline.cause(%s)", one, other) is True


def test_a_long_error_has_a_short_cause(database: Db) -> None:
    """It is a column of an index."""
    error = "ValueError: " + "many words " * 1000 + "(parse.py:12)"
    assert int(steps.one(database, "SELECT length(pipeline.cause(%s))", error)) < 200
