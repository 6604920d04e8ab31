"""A vhost that gives quorum queues to whoever does not say what it wants, as RabbitMQ 4's hosts often do."""

from __future__ import annotations

import httpx

from pipeline import submit
from tests.place import Place


def test_classic_queues_are_declared_and_consumed_in_a_vhost_whose_default_is_quorum(place: Place) -> None:
    """F22: the declaration was refused, and the process consumed nothing at all. RabbitMQ knows the default since 3.12."""
    node = place.servers.rabbitmq
    node.delete_vhost(place.name)
    node.create_vhost(place.name, default_queue_type="quorum")
    place.worker(threads=2)
    done, failed = submit(None, "single"), submit(None, "single", {"do": "fail"})
    assert [row["status"] for row in place.finished(done, failed)] == ["succeeded", "failed"]
    place.until(lambda: place.depth("single.act.XQ") == 1, 15, "the dead letter")
    answer = httpx.get(
        f"{node.management_url}/api/queues/{place.name}", auth=node.management_user, timeout=10, trust_env=False
    )
    types = {queue["name"]: queue["type"] for queue in answer.raise_for_status().json()}
    assert {types["single.act"], types["single.act.XQ"]} == {"classic"}
