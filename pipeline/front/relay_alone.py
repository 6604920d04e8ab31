"""A process that is only a relay, for deployments that want it apart from the workers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import orjson

import pipeline.actors  # noqa: F401  declares the workflows
from pipeline import settings
from pipeline.broker.broker import current
from pipeline.flow.leading import Leading
from pipeline.flow.prepare import prepare
from pipeline.flow.presence import Presence, new_worker_id
from pipeline.observe import logs
from pipeline.observe.counters import snapshot


def run(say: Callable[[str], None]) -> None:
    """Lead, or wait to lead, until a signal."""
    config = settings.get()
    logs.configure(config.log_format, config.log_level)
    prepare(config)
    broker = current()
    _, outbound = broker.open()
    presence = Presence(
        config.dsn, new_worker_id(config.worker_id or "relay"), threads=0, queues=[], beat=config.heartbeat_seconds,
        report=lambda: (outbound.oldest_unconfirmed(), orjson.dumps(snapshot()).decode(), [], "{}", 0),
    )  # fmt: skip
    presence.start()
    leading = Leading(config, presence.worker_no, outbound)
    leading.start()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    say(f"relay {presence.worker_id} is up")
    stop.wait()
    leading.stop()
    clean = outbound.drain(5)
    broker.close()
    presence.stop(clean=clean)
