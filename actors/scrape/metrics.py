"""The sources' breakers for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy import Connection, text

BREAKERS = text("""SELECT id AS source, CASE WHEN pause_reason IS DISTINCT FROM 'breaker' THEN 'closed'
    WHEN paused_until <= now() OR probe_until > now() THEN 'half-open' ELSE 'open' END AS state
    FROM sources ORDER BY 1 LIMIT 1000""")
STATES = ("closed", "half-open", "open")


def breakers(connection: Connection) -> Iterator[Metric]:
    """The state of each source's breaker, as a family with one 1."""
    family = GaugeMetricFamily(
        "pipeline_breaker", "1 for the state that the source's breaker is in", labels=["source", "state"]
    )
    for row in connection.execute(BREAKERS):
        for state in STATES:
            family.add_metric([row.source, state], int(row.state == state))
    yield family
