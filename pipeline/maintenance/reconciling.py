"""Reconciliation in a thread of its own beside the leader of the relay: RabbitMQ may be slow to answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg

from pipeline.maintenance.reconcile import Reconciler
from pipeline.observe import logs
from pipeline.settings import Settings
from pipeline.store.engine import connect

log = logs.get("pipeline.reconcile")

SECOND_LOOK = 2.0


class Reconciling:
    """Compares what is marked as sent with what RabbitMQ has, every half minute and after every reconnect to it."""

    def __init__(self, config: Settings, leads: Callable[[], bool]) -> None:
        self._config = config
        self._leads = leads
        self._reconciler = Reconciler(config)
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="pipeline-reconcile", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(1)

    def soon(self) -> None:
        """RabbitMQ came back, perhaps without all of its messages."""
        self._wake.set()

    def _run(self) -> None:
        pause = self._config.health_seconds
        while not self._stopping:
            self._wake.wait(pause)
            self._wake.clear()
            pause = self._config.health_seconds
            if self._leads() and not self._stopping and self._look():
                pause = min(pause, SECOND_LOOK)

    def _look(self) -> bool:
        """True if a queue looks short: it is judged at the second look."""
        try:
            with connect(self._config.session_dsn, "reconcile") as connection:
                return self._reconciler.check(connection)
        except psycopg.Error as error:
            log.warning("reconciliation lost PostgreSQL; trying again", error=str(error).strip())
        except Exception:
            log.exception("reconciliation failed; it is tried again")
        return True
