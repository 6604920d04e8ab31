"""What doctor says of the servers themselves: their versions, and what RabbitMQ would do with dead letters."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest
from pika import BlockingConnection

from pipeline import settings
from pipeline.broker.topology import declare
from pipeline.dev import doctor, versions
from tests.place import Place


def found(word: str) -> list[doctor.Finding]:
    return [one for one in doctor.examine() if word in one.what]


def test_doctor_says_which_servers_it_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is older than what the pipeline is tested with is a finding, with what to do."""
    assert all(len(found(f"{name} ")) >= 1 and found(f"{name} ")[0].well for name in versions.SUPPORTED)
    monkeypatch.setitem(versions.SUPPORTED, "PostgreSQL", (99,))
    monkeypatch.setitem(versions.SUPPORTED, "RabbitMQ", (99, 1))
    for name, oldest in (("PostgreSQL", "99"), ("RabbitMQ", "99.1")):
        [old] = [one for one in found(f"{name} ") if "upgrade it" in one.cure]
        assert not old.well and f"tested with {oldest} and newer" in old.cure


@pytest.mark.new_vhost
def test_doctor_says_that_rabbitmq_would_drop_dead_letters(
    place: Place, rabbitmq: BlockingConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of quorum queues, after so many looks; with the policy of our definitions it does not."""
    monkeypatch.setenv("PIPELINE_QUEUE_TYPE", "quorum")
    settings.get.cache_clear()
    declare(rabbitmq.channel(), ["single.act"], "quorum")
    assert found("drops a dead letter") == []
    node = place.servers.rabbitmq
    address = f"{node.management_url}/api/policies/{quote(place.vhost)}/dead-letters-kept"
    policy = {"pattern": r"\.XQ$", "apply-to": "queues", "priority": 0, "definition": {"delivery-limit": 20}}
    httpx.put(address, json=policy, auth=node.management_user, trust_env=False).raise_for_status()
    # The queue's own process tells of a policy a moment later.
    place.until(lambda: found("drops a dead letter"), 15, "the finding")
    [one] = found("drops a dead letter")
    assert not one.well and "single.act.XQ that was looked at 20 times" in one.what and "set_policy" in one.cure
