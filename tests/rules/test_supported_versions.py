"""Which versions of the servers are called too old."""

from __future__ import annotations

import pytest

from pipeline.dev.versions import supported


@pytest.mark.parametrize(
    ("server", "version", "well"),
    [
        ("RabbitMQ", "3.9.29", False),
        ("RabbitMQ", "3.10.8", True),
        ("RabbitMQ", "4.3.6", True),
        ("RabbitMQ", "4.4.0-beta.1+7.gabc", True),
        ("RabbitMQ", "", False),
        ("PostgreSQL", "14", False),
        ("PostgreSQL", "18", True),
    ],
)
def test_a_version_is_compared_by_its_numbers(server: str, version: str, well: bool) -> None:
    told = supported(server, version)
    assert told[:2] == (well, f"{server} {version}")
