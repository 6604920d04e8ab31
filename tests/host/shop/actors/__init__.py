"""The shop's own Dramatiq: its broker with its middleware, and its encoder, for every actor of this package.

``SHOP_ORDER`` says when the workflow's module is imported: before all this, or after it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.encoder import JSONEncoder
from sqlalchemy import text

from db import connect

WORKFLOW_FIRST = os.environ.get("SHOP_ORDER") == "workflow first"
HEADER = b"shop 1\n"


class Letterhead(JSONEncoder):
    """Messages that only the shop can read."""

    def encode(self, data: dict[str, Any]) -> bytes:
        return HEADER + super().encode(data)

    def decode(self, data: bytes) -> dict[str, Any]:
        assert data.startswith(HEADER), "somebody else's message is in the shop's queue"
        return super().decode(data.removeprefix(HEADER))


class Signature(dramatiq.Middleware):
    """Signs every mail, whether it was sent or not."""

    def after_process_message(
        self, broker: dramatiq.Broker, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        with engine.begin() as connection:
            connection.execute(
                text("UPDATE tasks SET signed = signed + 1 WHERE name = :name"), {"name": message.args[0]}
            )


if WORKFLOW_FIRST:
    importlib.import_module("shop.work")
engine = connect()
broker = RabbitmqBroker(url=os.environ["RABBITMQ_URL"])
broker.add_middleware(Signature())
dramatiq.set_broker(broker)
dramatiq.set_encoder(Letterhead())
if not WORKFLOW_FIRST:
    importlib.import_module("shop.work")
