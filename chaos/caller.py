"""A client of the API that does not give up: every job it asked for is there once."""

from __future__ import annotations

import threading
import time
from uuid import UUID

import httpx

from chaos.fault import Scene
from chaos.observer import until
from pipeline.dev.services.ports import LOOPBACK

EVERY = 0.1
TIMEOUT = 2.0
LONGEST = 600.0


class Caller:
    """Submits over HTTP, one job after another; a request without an answer is sent again under the same key."""

    def __init__(self, scene: Scene, port: int) -> None:
        self._subject = scene.stage.subject
        self._chance = scene.chance
        self._label = f"http-{scene.chance.getrandbits(64):x}"
        self._client = httpx.Client(base_url=f"http://{LOOPBACK}:{port}", timeout=TIMEOUT, trust_env=False)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="caller", daemon=True)
        self.jobs: list[UUID] = []
        self.refused: list[str] = []
        self.silent = 0
        self.last = 0.0

    def __enter__(self) -> Caller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def answered(self, seconds: float) -> None:
        """Wait for an answer to a request that was sent from now on; raises Deadline."""
        asked = time.monotonic()
        until(lambda: self.last > asked, seconds, "the API to answer")

    def _go_on(self) -> None:
        n, deadline = 0, time.monotonic() + LONGEST
        while not self._stop.wait(EVERY) and time.monotonic() < deadline:
            body = self._subject.body(n, self._chance)
            # Asked to its end even when nobody wants more: its job may exist, and must be in the books.
            while not self._submit(f"{self._label}:{n}", body):
                if time.monotonic() > deadline:
                    self.refused.append("the API did not answer for ten minutes")
                    return
                time.sleep(EVERY)
            n += 1

    def _submit(self, key: str, body: dict[str, object]) -> bool:
        """False if nobody knows whether the job was taken."""
        asked = time.monotonic()
        try:
            answer = self._client.post(
                "/v1/jobs", headers={"Idempotency-Key": key}, json={"workflow": self._subject.workflow, "body": body}
            )
        except httpx.HTTPError:
            self.silent += 1
            return False
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return False
        if answer.status_code == httpx.codes.ACCEPTED:
            self.jobs.append(UUID(answer.json()["id"]))
            self.last = asked
        else:
            self.refused.append(f"the API answered {answer.status_code}: {answer.text[:200]}")
        return True
