"""Dramatiq's Retries middleware, with PostgreSQL as the place where a retry waits."""

from __future__ import annotations

import threading
from typing import Any

from dramatiq import Broker
from dramatiq.broker import MessageProxy
from dramatiq.middleware import Retries

from pipeline.broker.delivery import Delivery
from pipeline.journey.settle import DEAD_LETTERED, settle_error, settle_for_good
from pipeline.worker import process

# A claim that PostgreSQL refuses altogether (its functions are not those of this code, say) is not asked for in a loop.
ASK_AGAIN = 5.0


class PhaseRetries(Retries):
    """Settles failed attempts: the phase raises, this classifies, computes the delay and makes the transition.

    The message is acknowledged afterwards; one whose budget is used up goes through the dead-letter exchange.
    """

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if exception is None or not isinstance(message, Delivery) or not message.deferred or message.abandoned:
            return
        worker = process.current()
        if message.attempt is None:
            worker.log.error("no answer to a claim; asking again", error=str(exception).strip())
            worker.inbound.set_aside(message, ASK_AGAIN)
            return
        if not message.attempt.finish():
            return
        # Still deferred: Dramatiq would swallow an exception raised here and acknowledge all the same.
        try:
            verdict = settle_error(worker, message.attempt, exception)
        except Exception:
            worker.log.exception("an attempt could not be settled; trying again", job=str(message.attempt.job_id))
            verdict = "locked"
        if verdict == "locked":
            later = (worker, message.attempt, exception)
            threading.Thread(target=settle_for_good, args=later, daemon=True).start()
            return
        if verdict in DEAD_LETTERED:
            message.fail()
        worker.held.remove(message.attempt)
        message.deferred = False
