"""What attempts leave behind for people: counts, durations and spans."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, get_args

from pipeline.declare.extras import MissingExtra, require
from pipeline.declare.states import Outcome
from pipeline.observe import lines, logs

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from pipeline.journey.attempt import Attempt

_counts: Counter[str] = Counter()
_lock = Lock()


def count(name: str, n: int = 1) -> None:
    """Add to a counter, for example ``refused.already_running``.

    >>> count("shop.parcels", 3)
    """
    with _lock:
        _counts[name] += n


def snapshot() -> dict[str, int]:
    """All counts of this process since it started."""
    with _lock:
        return dict(_counts)


BOUNDS = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "300", "inf")
_LIMITS = [float(bound) for bound in BOUNDS]
OUTCOMES = frozenset({*get_args(Outcome), "lost"})


@contextmanager
def in_logs(attempt: Attempt) -> Iterator[None]:
    """Whatever is logged in this block, by anybody, names the job, its phase, its attempt, its worker and its trace."""
    token = lines.running.set(attempt)
    try:
        yield
    finally:
        lines.running.reset(token)


def observe_duration(queue: str, seconds: float) -> None:
    """Count one execution of a phase."""
    bound = BOUNDS[bisect_left(_LIMITS, seconds)]
    count(f"duration.{queue}.{bound}")
    count(f"duration.{queue}.ms", round(seconds * 1000))


def observe_lag(seconds: float) -> None:
    """Count one look at the event loop, by how late it turned."""
    count(f"lag.{BOUNDS[bisect_left(_LIMITS, seconds)]}")
    count("lag.ms", round(seconds * 1000))


def outcomes(counters: dict[str, int], queues: list[str]) -> Iterator[tuple[str, str, str, int]]:
    """Counters named ``<queue>.<outcome>``: (name, queue, outcome, count)."""
    known = set(queues)
    for name, n in counters.items():
        queue, _, outcome = name.rpartition(".")
        if queue in known and outcome in OUTCOMES:
            yield name, queue, outcome, n


log = logs.get("pipeline.tracing")
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NOTHING: AbstractContextManager[str | None] = nullcontext()


def phase_span(queue: str, traceparent: str, **attributes: Any) -> AbstractContextManager[str | None]:
    """Span around one execution of a phase. Gives the traceparent for outgoing calls, or None when tracing is off.

    An exception that leaves the block is recorded by its kind only: its words may hold what the job is about.
    """
    tracer = _tracer(os.getpid())
    return _NOTHING if tracer is None else _span(tracer, queue, traceparent, attributes)


@lru_cache(maxsize=2)
def _tracer(pid: int) -> Tracer | None:  # noqa: ARG001  a forked child exports through a thread of its own
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        require("tracing", f"tracing (one of {', '.join(ENDPOINTS)} is set)")
    except MissingExtra as error:
        # The variable may be meant for somebody else in this environment; jobs run all the same.
        log.warning(f"nothing is traced: {error}")
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "pipeline"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("pipeline")


@contextmanager
def _span(tracer: Tracer, queue: str, traceparent: str, attributes: dict[str, Any]) -> Iterator[str]:
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    told = {"messaging.destination.name": queue, **{f"pipeline.{name}": value for name, value in attributes.items()}}
    with tracer.start_as_current_span(
        queue, parent, SpanKind.CONSUMER, told, record_exception=False, set_status_on_exception=False
    ) as span:
        own = span.get_span_context()
        try:
            yield f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
