"""JSON from PostgreSQL: every number can be passed on."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.job import decode
from pipeline.dev.services import Servers
from pipeline.store.engine import connect, engine
from tests.databases import Databases

PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e15, 1e15) | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES)
def test_what_fits_comes_back_as_it_was(value: Any) -> None:
    """64 bits, floats, and text of any kind."""
    assert decode(json.dumps(value).encode()) == value


@given(st.lists(st.integers(-(10**400), 10**400) | st.integers(4000, 6000).map(lambda n: 10**n if n < 4300 else n)))
def test_what_does_not_fit_can_be_passed_on_all_the_same(numbers: list[int]) -> None:
    """As a float, near enough, or as digits."""
    for number, read in zip(numbers, decode(json.dumps(numbers)), strict=True):
        assert read == number if isinstance(read, int) else float(read) == pytest.approx(_float(number))
    orjson.dumps(decode(json.dumps(numbers)))


def _float(number: int) -> float:
    return float(str(number))


@pytest.mark.parametrize("text", ["1e20", "1e400", "-1e5000", "12345678901234567890123"])
def test_both_ways_to_postgresql_read_alike(servers: Servers, databases: Databases, text: str) -> None:
    """The engine's own connections, and SQLAlchemy's."""
    name = databases.new("json")
    query = f"SELECT '{{\"n\": {text}}}'::jsonb"
    with connect(servers.postgres.url(name), "test") as connection:
        row = connection.execute(query).fetchone()
    with engine(servers.postgres.url(name).replace("postgresql://", "postgresql+psycopg://")).connect() as connection:
        again = connection.exec_driver_sql(query).scalar_one()
    databases.give_back(name)
    assert row is not None and row[0] == again
    assert orjson.loads(orjson.dumps(again)) == again
