"""The sources' breakers and unread prices for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy import Connection, text

BREAKERS = text("""SELECT name AS source, CASE WHEN pause_reason IS DISTINCT FROM 'breaker' THEN 'closed'
    WHEN paused_until <= now() OR probe_until > now() THEN 'half-open' ELSE 'open' END AS state
    FROM sources ORDER BY 1 LIMIT 1000""")
# Some sources have many: what was seen in the last day shows whether their writing has changed.
UNREAD = text("""SELECT s.name AS source, u.reason, count(*) AS prices
    FROM unread_prices u JOIN sources s ON s.id = u.source_id
    WHERE u.last_seen_at > now() - interval '1 day' GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 5000""")
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


def unread(connection: Connection) -> Iterator[Metric]:
    """Prices that were kept aside, by source and reason."""
    family = GaugeMetricFamily(
        "pipeline_unread_prices",
        "prices seen in the last 24 hours that could not be read for certain",
        labels=["source", "reason"],
    )
    for row in connection.execute(UNREAD):
        family.add_metric([row.source, row.reason], row.prices)
    yield family
