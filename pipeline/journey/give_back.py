"""Messages that a busy process gives back from quorum queues: sent anew, so that no delivery counts against their jobs.

Whatever returns a message to a quorum queue counts as a delivery (basic.nack and basic.reject up to RabbitMQ 4.2, and a
channel or connection that closes). A later phase's message that waits behind earlier phases for long enough would reach
the limit, and its healthy job would fail as undeliverable.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import sleep
from typing import TYPE_CHECKING
from uuid import UUID

from pipeline.journey.message import InvalidEnvelope, parse
from pipeline.observe import failpoints
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.gateway import sending

if TYPE_CHECKING:
    from pipeline.broker.inbound import Delivery, Inbound

# Rows that another transaction holds; what cannot be had for ten seconds goes back as a counted delivery.
ASK_AGAIN, TIMES = 0.5, 20


class GiveBack:
    """PostgreSQL puts their jobs back to the gate under a new number; the old message is void and is acknowledged.

    Should this process die in between, RabbitMQ delivers the old message again, and whoever gets it finds it void.
    """

    def __init__(self, inbound: Inbound) -> None:
        self._inbound = inbound

    def begin(self, deliveries: Sequence[Delivery]) -> None:
        """Called in the AMQP thread, which must not wait for PostgreSQL."""
        threading.Thread(target=self._give_back, args=(deliveries,), daemon=True).start()

    def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        left = list(deliveries)
        for _ in range(TIMES):
            left = self._send_anew(left)
            if not left:
                return
            sleep(ASK_AGAIN)
        self._inbound.requeue(left)

    def _send_anew(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Returns those whose rows another transaction holds. Only a waiting job's message may be acknowledged."""
        refs = {delivery: ref for delivery in deliveries if (ref := _ref(delivery)) is not None}
        waiting = database.insist(lambda connection: sending.send_anew(connection, list(refs.values()))) if refs else {}
        void = [delivery for delivery, ref in refs.items() if waiting.get(ref) is True]
        held = [delivery for delivery, ref in refs.items() if waiting.get(ref) is False]
        if void and failpoints.armed:
            failpoints.reach("give_back.committed")
        count("given_back", len(void))
        self._inbound.discard(void)
        self._inbound.requeue([delivery for delivery in deliveries if refs.get(delivery) not in waiting])
        return held


def _ref(delivery: Delivery) -> tuple[UUID, int] | None:
    """Job and send, or None if the message says neither: an app's bare job id, or nothing of ours."""
    try:
        header = parse(delivery.args[0]).header
    except (InvalidEnvelope, IndexError):
        return None
    return header.job_id, header.send
