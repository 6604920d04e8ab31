"""Faults of a RabbitMQ cluster with quorum queues: these waves have a broker and workers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pika
from pika.adapters.blocking_connection import BlockingChannel

from chaos.cluster import SIZE, Cluster
from chaos.fault import Hits, Scene, fault, now
from chaos.observer import until
from chaos.stage import Stage
from pipeline.dev.services import RabbitMQ, Servers

SINCE = "SELECT count(*) FROM pipeline.attempts WHERE outcome = 'succeeded' AND started_at > %s"


class ClusterStage(Stage):
    """The run's own database, another broker: the run's own workers rest meanwhile."""

    def __init__(self, stage: Stage, cluster: Cluster) -> None:
        self.cluster = cluster
        servers = Servers(stage.servers.postgres, cluster.nodes[0])
        super().__init__(
            servers,
            stage.subject,
            stage.folder / "cluster",
            seed=0,
            name=stage.name,
            workers=SIZE,
            management=stage.management,
        )
        self.chance = stage.chance

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "RABBITMQ_URL": self.cluster.urls(), "PIPELINE_QUEUE_TYPE": "quorum"}

    def environments(self, workers: int) -> list[dict[str, str]]:
        """Each worker begins with another node, so that every node has somebody to lose."""
        each = super().environments(workers)
        return [{**one, "RABBITMQ_URL": self.cluster.urls(n % SIZE)} for n, one in enumerate(each)]

    def channel(self) -> BlockingChannel:
        """At whichever node runs."""
        return pika.BlockingConnection(pika.URLParameters(self.cluster.living().url())).channel()


@contextmanager
def on_a_cluster(stage: Stage) -> Iterator[Stage]:
    """Three nodes and three workers for one wave."""
    with stage.resting():
        cluster = Cluster(stage.folder / "cluster")
        try:
            cluster.start()
            there = ClusterStage(stage, cluster)
            try:
                there.open()
                yield there
            finally:
                there.close()
        finally:
            cluster.remove()


@fault("RabbitMQ cluster of three: a follower's node SIGKILL, then the leader's", elsewhere=on_a_cluster)
def kill_nodes(scene: Scene) -> Hits:
    """Quorum queues have a majority all the time: work goes on, and a new leader is found."""
    assert isinstance(scene.stage, ClusterStage)
    done, cluster, queue = Hits(unit="nodes killed"), scene.stage.cluster, scene.stage.queues()[0]
    for leads in (False, True):
        leader, followers = until(lambda: _complete(cluster, queue), 60, "all three nodes to have the queue")
        victim = leader if leads else scene.chance.choice(followers)
        scene.pause(0.5, 2.0)
        _kill_and_return(scene, cluster, queue, victim, done)
    return done


def _kill_and_return(scene: Scene, cluster: Cluster, queue: str, victim: RabbitMQ, done: Hits) -> None:
    victim.kill()
    done.hits += 1
    moment = now()
    try:
        until(lambda: _leader(cluster, queue), 30, "a leader among the other two")
        until(lambda: scene.observer.one(SINCE, moment) >= 10, 30, "work to go on without the node")
        scene.pause(2, 5)
    finally:
        victim.start()


def _complete(cluster: Cluster, queue: str) -> tuple[RabbitMQ, list[RabbitMQ]] | None:
    leader, followers = _look(cluster, queue)
    return (leader, followers) if leader and len(followers) == SIZE - 1 else None


def _leader(cluster: Cluster, queue: str) -> RabbitMQ | None:
    leader, _ = _look(cluster, queue)
    return leader if leader and leader.running else None


def _look(cluster: Cluster, queue: str) -> tuple[RabbitMQ | None, list[RabbitMQ]]:
    try:
        return cluster.place_of(queue)
    except httpx.HTTPError:
        return None, []
