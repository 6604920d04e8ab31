"""What every process is ready to lead: sending, with the reconciliation beside it, and maintenance."""

from __future__ import annotations

from pipeline.broker.outbound import Outbound
from pipeline.journey.relay import Relay
from pipeline.maintenance.maintenance import Maintenance
from pipeline.maintenance.reconciling import Reconciling
from pipeline.settings import Settings


class Leading:
    """Threads of their own: none of them waits behind the jobs it is to save, nor for another."""

    def __init__(self, config: Settings, worker_no: int, outbound: Outbound) -> None:
        self._reconciling = Reconciling(config, lambda: self.relay.leading)
        self.relay = Relay(
            config.session_dsn,
            worker_no,
            outbound,
            backstop=config.backstop_seconds,
            on_reconnect=self._reconciling.soon,
        )
        self._maintenance = Maintenance(config, worker_no, outbound)

    def start(self) -> None:
        for part in (self.relay, self._reconciling, self._maintenance):
            part.start()

    def stop(self) -> None:
        for part in (self.relay, self._reconciling, self._maintenance):
            part.stop()
