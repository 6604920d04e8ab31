"""A failover of PostgreSQL: this wave has a standby of the run's own server, and workers that know both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.fault import Hits, Scene, fault, now
from chaos.faults_postgres import AWAY
from chaos.observer import Deadline, Observer, until
from chaos.pair import Pair
from chaos.stage import Stage
from chaos.work import long_jobs
from pipeline import settings

# There and back: the run's own server is the primary again when the wave is over.
FAILOVERS = 2
RESUMES = 10.0
SINCE = "SELECT count(*) FROM pipeline.attempts WHERE outcome = 'succeeded' AND finished_at > %s"


class PairStage(Stage):
    """The run's own database and broker: the run's own workers rest meanwhile."""

    def __init__(self, stage: Stage, pair: Pair) -> None:
        self.pair = pair
        self.address = pair.url(stage.name)
        super().__init__(
            stage.servers,
            stage.subject,
            stage.folder / "failover",
            seed=0,
            name=stage.name,
            management=stage.management,
        )
        self.chance = stage.chance

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "DATABASE_URL": self.address}

    def new_observer(self) -> Observer:
        """At whichever server takes writes."""
        return Observer(self.address)


@contextmanager
def on_a_pair(stage: Stage) -> Iterator[Stage]:
    """A synchronous standby and workers for one wave."""
    with stage.resting():
        pair = Pair(stage.servers.postgres, stage.folder / "standby")
        try:
            pair.open()
            there = PairStage(stage, pair)
            try:
                with _submitting_to(there.address):
                    there.open()
                    yield there
            finally:
                there.close()
        finally:
            pair.close()


@contextmanager
def _submitting_to(address: str) -> Iterator[None]:
    """What this process submits goes the same way."""
    before = os.environ["DATABASE_URL"]
    os.environ["DATABASE_URL"] = address
    settings.get.cache_clear()
    try:
        yield
    finally:
        os.environ["DATABASE_URL"] = before
        settings.get.cache_clear()


@fault("PostgreSQL failover to a synchronous standby", explains=AWAY, elsewhere=on_a_pair)
def fail_over(scene: Scene) -> Hits:
    """The primary is killed and the standby promoted, and back again: no crash and no execution is charged."""
    assert isinstance(scene.stage, PairStage)
    done = Hits(unit="failovers")
    for _ in range(FAILOVERS):
        done.jobs += long_jobs(scene, 4, 8)
        scene.pause(0.2, 1.5)
        promoted = scene.stage.pair.fail_over()
        done.hits += 1
        _resume(scene, promoted, done)
        scene.stage.pair.follow()
    return done


def _resume(scene: Scene, promoted: float, done: Hits) -> None:
    moment = now()
    try:
        until(lambda: scene.observer.one(SINCE, moment), RESUMES - (time.monotonic() - promoted), "work to resume")
    except Deadline as late:
        done.complaints.append(str(late))
