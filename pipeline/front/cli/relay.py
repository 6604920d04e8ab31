"""A process that is only a relay, for deployments that want it apart from the workers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import orjson

from pipeline import settings
from pipeline.actors import broker
from pipeline.journey.attempt import Held
from pipeline.maintenance.leading import Leading
from pipeline.observe import logs
from pipeline.observe.instruments import snapshot
from pipeline.store.gateway.liveness import Report
from pipeline.worker.liveness import Liveness, new_worker_id
from pipeline.worker.prepare import prepare


def run(say: Callable[[str], None]) -> None:
    """Lead, or wait to lead, until a signal."""
    config = settings.get()
    logs.configure(config.log_format, config.log_level)
    prepare(config)
    _, outbound = broker.open()
    liveness = Liveness(
        config.session_dsn,
        new_worker_id(config.worker_id or "relay"),
        held=Held(),
        threads=0,
        queues=[],
        beat=config.heartbeat_seconds,
        report=lambda: Report(outbound.oldest_unconfirmed(), orjson.dumps(snapshot()).decode(), [], "{}", 0),
    )
    liveness.start()
    leading = Leading(config, liveness.worker_no, outbound)
    leading.start()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    say(f"relay {liveness.worker_id} is up")
    stop.wait()
    leading.stop()
    clean = outbound.drain(5)
    broker.close()
    liveness.stop(clean=clean)
