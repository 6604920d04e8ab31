"""The process's broker, with the middleware that makes phases durable. Made when the first phase is declared."""

from __future__ import annotations

from typing import Any

import dramatiq
import orjson
from periodiq import PeriodiqMiddleware

from pipeline import settings
from pipeline.broker.broker import PipelineBroker
from pipeline.broker.topology import QueueType
from pipeline.flow.boot import Engine
from pipeline.flow.retries import PhaseRetries
from pipeline.flow.vital import vital_thread

# Sweeps have a thread of their own but may wait for a restart; a late sweep is still a good one.
LATE = 600


class FastJSON(dramatiq.JSONEncoder):
    """Dramatiq's JSON, decoded by orjson."""

    def decode(self, data: bytes) -> Any:
        return orjson.loads(data)


def broker() -> PipelineBroker:
    """Install it once; Dramatiq's default would silently mean a RabbitMQ on localhost."""
    found = dramatiq.broker.global_broker
    if not isinstance(found, PipelineBroker):
        middleware = [Engine(), PhaseRetries(), PeriodiqMiddleware(skip_delay=LATE)]
        found = PipelineBroker(_address, middleware, vital_thread)
        dramatiq.set_broker(found)
        dramatiq.set_encoder(FastJSON())
    return found


def _address() -> tuple[str, QueueType]:
    config = settings.get()
    return config.rabbitmq_url.get_secret_value(), config.queue_type
