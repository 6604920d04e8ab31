"""The whole cluster for Prometheus, read from PostgreSQL: the same from every process, no files, nothing to clean up.

Workers count what happens to them and their heartbeat brings it here; see docs/metrics.md for every name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, text

from pipeline.declare.extension import extensions, load
from pipeline.observe.histograms import BOUNDS, outcomes

CAP = 10_000
STATS = text("SELECT * FROM pipeline.stats(:cap)")
COUNTERS = text("SELECT name, n FROM pipeline.counters ORDER BY name")
RATE_LIMITS = text("""SELECT name, rate, (paused_until > now())::int AS paused,
    CASE WHEN next_at > now() THEN extract(epoch FROM next_at - now())::float8 ELSE 0 END AS ahead
    FROM pipeline.rate_limits ORDER BY name LIMIT 1000""")
WORKERS = text("""SELECT state, count(*) AS n, sum(threads) AS threads, max(age) AS age, sum(stuck) AS stuck
    FROM (SELECT pipeline.worker_state(w) AS state, threads, stuck,
           extract(epoch FROM now() - heartbeat_at)::float8 AS age FROM pipeline.workers w WHERE stopped_at IS NULL) w
    GROUP BY state""")
LAG = text("SELECT pipeline.relay_lag()")


def render(connection: Connection) -> bytes:
    """Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Cluster(connection))
    return generate_latest(registry)


class _Cluster(Collector):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        rows = self._rows(STATS, cap=CAP)
        yield from _phases(rows)
        yield from _workers(self._rows(WORKERS))
        yield from _rate_limits(self._rows(RATE_LIMITS))
        for extension in extensions():
            for metrics in extension.metrics:
                yield from load(metrics)(self._connection)
        lag = GaugeMetricFamily("pipeline_relay_lag_seconds", "how late the relay is with what could be sent now")
        lag.add_metric([], float(self._connection.execute(LAG).scalar_one()))
        yield lag
        counters = {row["name"]: int(row["n"]) for row in self._rows(COUNTERS)}
        yield from _counters(counters, [row["queue"] for row in rows])

    def _rows(self, statement: Any, **values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._connection.execute(statement, values).mappings()]


def _phases(rows: list[dict[str, Any]]) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("pipeline_waiting", f"jobs not sent yet, up to {CAP}", labels=["queue", "reason"])
    pool = GaugeMetricFamily("pipeline_pool_processors", "processors of a pool", labels=["queue", "state"])
    for row in rows:
        for reason, n in row["waiting"].items():
            waiting.add_metric([row["queue"], reason], n)
        if row["pool"] is not None:
            busy, error = row["busy"] - row["error"], row["error"]
            for state, n in (("idle", row["pool"] - row["busy"]), ("busy", busy), ("error", error)):
                pool.add_metric([row["queue"], state], max(n, 0))
    yield waiting
    yield pool
    for column, name, said in (
        ("queued", "pipeline_queued", f"messages in the broker, up to {CAP}"),
        ("running", "pipeline_running", "jobs that run"),
        ("retryable", "pipeline_retryable", f"jobs that back off, up to {CAP}"),
        ("failed", "pipeline_dead_letters", f"failed jobs nobody has replayed or discarded, up to {CAP}"),
        ("oldest_seconds", "pipeline_oldest_age_seconds", "age of the oldest job that waits for a thread"),
    ):
        family = GaugeMetricFamily(name, said, labels=["queue"])
        for row in rows:
            family.add_metric([row["queue"]], row[column] or 0)
        yield family


def _workers(rows: list[dict[str, Any]]) -> Iterator[Metric]:
    found = {row["state"]: row for row in rows}
    for column, name, said in (
        ("n", "pipeline_workers", "worker processes that have not signed off"),
        ("threads", "pipeline_worker_threads", "their threads"),
        (
            "stuck",
            "pipeline_stuck_threads",
            "threads in a call that cannot be interrupted",
        ),
        ("age", "pipeline_worker_heartbeat_age_seconds", "the oldest heartbeat among them"),
    ):
        family = GaugeMetricFamily(name, said, labels=["state"])
        for state in ("alive", "not_consuming", "missing"):
            family.add_metric([state], float(found[state][column]) if state in found else 0)
        yield family


def _rate_limits(rows: list[dict[str, Any]]) -> Iterator[Metric]:
    rate = GaugeMetricFamily(
        "pipeline_rate_limit_per_second", "calls a second that the rate limit allows", labels=["rate_limit"]
    )
    ahead = GaugeMetricFamily(
        "pipeline_rate_limit_reserved_seconds", "how far turns are given out", labels=["rate_limit"]
    )
    paused = GaugeMetricFamily("pipeline_rate_limit_paused", "1 while the rate limit is paused", labels=["rate_limit"])
    for row in rows:
        if row["rate"] is not None:
            rate.add_metric([row["name"]], row["rate"])
        ahead.add_metric([row["name"]], row["ahead"])
        paused.add_metric([row["name"]], row["paused"] or 0)
    yield from (rate, ahead, paused)


def _counters(counters: dict[str, int], queues: list[str]) -> Iterator[Metric]:
    yield _durations(counters, queues)
    ended = CounterMetricFamily("pipeline_attempts", "attempts that ended", labels=["queue", "outcome"])
    used = set()
    for name, queue, outcome, n in outcomes(counters, queues):
        ended.add_metric([queue, outcome], n)
        used.add(name)
    yield ended
    rest = CounterMetricFamily("pipeline_events", "everything else that workers count", labels=["event"])
    for name, n in counters.items():
        if name not in used and not name.startswith("duration."):
            rest.add_metric([name], n)
    yield rest


def _durations(counters: dict[str, int], queues: list[str]) -> HistogramMetricFamily:
    """The counters of all workers as one histogram a queue."""
    family = HistogramMetricFamily("pipeline_phase_duration_seconds", "time in the phase's function", labels=["queue"])
    for queue in queues:
        counts = list(accumulate(counters.get(f"duration.{queue}.{bound}", 0) for bound in BOUNDS))
        if counts[-1]:
            marks = [("+Inf" if bound == "inf" else bound, float(n)) for bound, n in zip(BOUNDS, counts, strict=True)]
            family.add_metric([queue], marks, counters.get(f"duration.{queue}.ms", 0) / 1000)
    return family
