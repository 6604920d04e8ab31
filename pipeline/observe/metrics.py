"""The whole cluster for Prometheus, read from PostgreSQL: the same from every process, no files, nothing to clean up.

Workers count what happens to them and their heartbeat brings it here; see docs/metrics.md for every name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from pipeline.declare.extension import extensions, load
from pipeline.observe.instruments import BOUNDS, outcomes

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pipeline.store.gateway.reading import Leader, PhaseNow, RateLimitNow, Signals, WorkersNow

CAP = 10_000
# What alerts look at.
FINAL = ("succeeded", "failed", "cancelled")
# What pipeline.count_ended adds up; the bounds are those that it has.
ADDED_UP = ("queue_time.", "job_time.", "finished.", "submitted.")
QUEUE_BOUNDS = ("0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "300", "900", "3600", "inf")
JOB_BOUNDS = ("0.1", "0.5", "1", "5", "10", "30", "60", "300", "900", "3600", "14400", "86400", "inf")
ENDS = frozenset({"succeeded", "retried", "exhausted", "failed", "crashed", "poisoned"})


@dataclass(frozen=True)
class Cluster:
    """What PostgreSQL says of the cluster; the doors read it (see pipeline.store.gateway.reading)."""

    phases: list[PhaseNow]
    workers: list[WorkersNow]
    rate_limits: list[RateLimitNow]
    relay_lag: float
    counters: dict[str, int]
    signals: Signals
    leaders: list[Leader]
    versions: dict[str, int]


def render(cluster: Cluster, connection: Connection) -> bytes:
    """Prometheus's text format. The application's own metrics read from ``connection``."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(cluster, connection))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, cluster: Cluster, connection: Connection) -> None:
        self._cluster = cluster
        self._connection = connection

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from _phases(self._cluster.phases)
        yield from _workers(self._cluster.workers)
        yield from _rate_limits(self._cluster.rate_limits)
        for extension in extensions():
            for metrics in extension.metrics:
                yield from load(metrics)(self._connection)
        lag = GaugeMetricFamily("pipeline_relay_lag_seconds", "how late the relay is with what could be sent now")
        lag.add_metric([], self._cluster.relay_lag)
        yield lag
        yield from _signals(self._cluster)
        yield from _jobs(self._cluster.counters, self._cluster.phases)
        yield from _counters(self._cluster.counters, [phase.queue for phase in self._cluster.phases])


def _phases(phases: list[PhaseNow]) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("pipeline_waiting", f"jobs not sent yet, up to {CAP}", labels=["queue", "reason"])
    pool = GaugeMetricFamily("pipeline_pool_processors", "processors of a pool", labels=["queue", "state"])
    for phase in phases:
        for reason, n in phase.waiting.items():
            waiting.add_metric([phase.queue, reason], n)
        if phase.pool is not None:
            busy, error = phase.busy - phase.error, phase.error
            for state, n in (("idle", phase.pool - phase.busy), ("busy", busy), ("error", error)):
                pool.add_metric([phase.queue, state], max(n, 0))
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
        for phase in phases:
            family.add_metric([phase.queue], getattr(phase, column) or 0)
        yield family


def _workers(workers: list[WorkersNow]) -> Iterator[Metric]:
    found = {one.state: one for one in workers}
    for column, name, said in (
        ("n", "pipeline_workers", "worker processes that have not signed off"),
        ("threads", "pipeline_worker_threads", "their threads"),
        (
            "stuck",
            "pipeline_stuck_threads",
            "threads in a call that cannot be interrupted, and coroutines that do not end",
        ),
        ("age", "pipeline_worker_heartbeat_age_seconds", "the oldest heartbeat among them"),
    ):
        family = GaugeMetricFamily(name, said, labels=["state"])
        for state in ("alive", "draining", "not_consuming", "missing"):
            family.add_metric([state], float(getattr(found[state], column)) if state in found else 0)
        yield family


def _rate_limits(rate_limits: list[RateLimitNow]) -> Iterator[Metric]:
    rate = GaugeMetricFamily(
        "pipeline_rate_limit_per_second", "calls a second that the rate limit allows", labels=["rate_limit"]
    )
    ahead = GaugeMetricFamily(
        "pipeline_rate_limit_reserved_seconds", "how far ahead permits are promised", labels=["rate_limit"]
    )
    paused = GaugeMetricFamily("pipeline_rate_limit_paused", "1 while the rate limit is paused", labels=["rate_limit"])
    for one in rate_limits:
        if one.rate is not None:
            rate.add_metric([one.name], one.rate)
        ahead.add_metric([one.name], one.ahead)
        paused.add_metric([one.name], one.paused or 0)
    yield from (rate, ahead, paused)


def _counters(counters: dict[str, int], queues: list[str]) -> Iterator[Metric]:
    yield _durations(counters, queues)
    yield _lag(counters)
    ended = CounterMetricFamily("pipeline_attempts", "attempts that ended", labels=["queue", "outcome"])
    used = set()
    # Also those that never were: what begins at nothing has an increase when it comes.
    found = {(queue, outcome): 0 for queue in queues for outcome in sorted(ENDS)}
    for name, queue, outcome, n in outcomes(counters, queues):
        found[queue, outcome] = n
        used.add(name)
    for labels, n in found.items():
        ended.add_metric(labels, n)
    yield ended
    rest = CounterMetricFamily("pipeline_events", "everything else that workers count", labels=["event"])
    for name, n in counters.items():
        if name not in used and not name.startswith(("duration.", "lag.", *ADDED_UP)):
            rest.add_metric([name], n)
    yield rest


def _durations(counters: dict[str, int], queues: list[str]) -> HistogramMetricFamily:
    """The counters of all workers as one histogram a queue."""
    family = HistogramMetricFamily("pipeline_phase_duration_seconds", "time in the phase's function", labels=["queue"])
    for queue in queues:
        _add_histogram(family, [queue], counters, f"duration.{queue}")
    return family


def _lag(counters: dict[str, int]) -> HistogramMetricFamily:
    family = HistogramMetricFamily("pipeline_event_loop_lag_seconds", "how late the event loops turn", labels=[])
    _add_histogram(family, [], counters, "lag")
    return family


def _add_histogram(
    family: HistogramMetricFamily,
    labels: list[str],
    counters: dict[str, int],
    prefix: str,
    bounds: tuple[str, ...] = BOUNDS,
) -> None:
    counts = list(accumulate(counters.get(f"{prefix}.{bound}", 0) for bound in bounds))
    if counts[-1]:
        marks = [("+Inf" if bound == "inf" else bound, float(n)) for bound, n in zip(bounds, counts, strict=True)]
        family.add_metric(labels, marks, counters.get(f"{prefix}.ms", 0) / 1000)


def _signals(cluster: Cluster) -> Iterator[Metric]:
    schedules = GaugeMetricFamily("pipeline_schedule_lag_seconds", "how late the oldest moment of a schedule is")
    schedules.add_metric([], cluster.signals.schedule_lag)
    snapshot = GaugeMetricFamily("pipeline_oldest_snapshot_age_seconds", "of a transaction that keeps rows from vacuum")
    snapshot.add_metric([], cluster.signals.snapshot_age)
    led = GaugeMetricFamily("pipeline_leader", "1 while somebody leads", labels=["leader"])
    age = GaugeMetricFamily("pipeline_leader_age_seconds", "since when the present leader leads", labels=["leader"])
    for one in cluster.leaders:
        led.add_metric([one.name], int(one.led))
        if one.age is not None:
            age.add_metric([one.name], one.age)
    versions = GaugeMetricFamily("pipeline_workers_by_version", "living workers by their code", labels=["version"])
    for version, n in cluster.versions.items():
        versions.add_metric([version], n)
    yield from (schedules, snapshot, led, age, versions)


def _jobs(counters: dict[str, int], phases: list[PhaseNow]) -> Iterator[Metric]:
    """Jobs from their submission to their end; added up by the leader of maintenance."""
    waited = HistogramMetricFamily(
        "pipeline_queue_time_seconds", "from when an attempt could start to when it did", labels=["queue"]
    )
    took = HistogramMetricFamily("pipeline_job_duration_seconds", "from submission to end", labels=["workflow"])
    submitted = CounterMetricFamily("pipeline_jobs_submitted", "jobs submitted", labels=["workflow"])
    finished = CounterMetricFamily("pipeline_jobs_finished", "jobs that ended", labels=["workflow", "status"])
    for phase in phases:
        _add_histogram(waited, [phase.queue], counters, f"queue_time.{phase.queue}", QUEUE_BOUNDS)
    for workflow in dict.fromkeys(phase.workflow for phase in phases):
        _add_histogram(took, [workflow], counters, f"job_time.{workflow}", JOB_BOUNDS)
        submitted.add_metric([workflow], counters.get(f"submitted.{workflow}", 0))
        for status in FINAL:
            finished.add_metric([workflow, status], counters.get(f"finished.{workflow}.{status}", 0))
    yield from (waited, took, submitted, finished)
