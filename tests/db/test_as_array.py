"""Bodies on their way to submit_many."""

from __future__ import annotations

from typing import Any

import orjson
import psycopg
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dev.services import Servers
from pipeline.store.gateway.client import as_array

# PostgreSQL keeps neither NUL nor half a surrogate pair.
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])) | st.sampled_from(
    ['"', "\\", '\\"', "{", "},{", ",", "NULL", "'", '{"a": "\\\\"}']
)
BODIES = st.dictionaries(
    TEXTS, TEXTS | st.integers(-(2**53), 2**53) | st.none() | st.lists(TEXTS, max_size=3), max_size=4
)


def test_any_bodies_arrive_as_they_were_sent(servers: Servers) -> None:
    """Quotes, backslashes and braces mean something in an array's text, and nothing in a body."""
    with psycopg.connect(servers.database_url, autocommit=True) as connection:

        @given(st.lists(BODIES, min_size=1, max_size=5))
        def arrive(bodies: list[dict[str, Any]]) -> None:
            sent = as_array(orjson.dumps(body).decode() for body in bodies)
            row = connection.execute("SELECT %s::jsonb[]", (sent,)).fetchone()
            assert row is not None
            assert row[0] == bodies

        arrive()
