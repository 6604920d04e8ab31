"""Webhooks reach a receiver that verifies them: signed, tried again, and never towards a private address."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC
from typing import Any
from uuid import UUID

import pytest

from pipeline import JobFailed
from pipeline.webhooks import InvalidWebhook, Webhook, verify, webhook
from tests.commands import pipeline
from tests.place import Place
from tests.receiver import SECRET, Answer, Receiver, Request, receiving
from tests.webhook_workflows import audited

PARTNER, OLDER = ("whsec_" + base64.b64encode(sign * 32).decode() for sign in (b"p", b"o"))
# A delay of five seconds is one of a twentieth.
QUICK = {"PIPELINE_BACKOFF_SCALE": "0.01"}
MODULE = {"PIPELINE_WORKFLOWS": "tests.webhook_workflows"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def worker(place: Place, receiver: Receiver, **settings: str) -> None:
    environment = {**receiver.settings, **QUICK, **MODULE, "TEST_RECEIVER": receiver.url, **settings}
    place.worker(settings=environment)


def outcomes(place: Place, job: UUID) -> list[str]:
    return [row["outcome"] for row in place.attempts(job)]


def requests(place: Place, receiver: Receiver, n: int) -> list[Request]:
    place.until(lambda: len(receiver.requests) >= n, 20, f"{n} requests")
    return receiver.requests


def test_hooks_tell_each_address_with_a_signature_of_its_own_secret(place: Place, receiver: Receiver) -> None:
    """The receivers verify it; another secret is refused, and so is a body that was changed on the way."""
    worker(place, receiver, PIPELINE_WEBHOOK_SECRETS=f"{SECRET}, partner:{PARTNER}")
    # The addresses of hooks are in force once they are migrated; a test's database comes with others.
    assert pipeline(place, "migrate", TEST_RECEIVER=receiver.url, **MODULE).returncode == 0
    job = audited.submit({"url": "x"})
    assert job.result(timeout=30) == {"seen": 3}
    one, two = sorted(requests(place, receiver, 2), key=lambda request: request.path)
    assert (one.path, two.path) == ("/hooks/one", "/hooks/two")
    told = one.verified().body
    assert told["type"] == "audited.succeeded" and told["timestamp"] == told_at(place, job.id)
    assert told["data"] == {
        "job": str(job.id),
        "workflow": "audited",
        "phase": "look",
        "state": "succeeded",
        "error": None,
        "body": {"url": "x"},
        "result": {"seen": 3},
        "team": "sales",
    }
    assert two.verified(PARTNER).body["data"]["job"] == str(job.id)
    with pytest.raises(InvalidWebhook):
        two.verified(SECRET)
    with pytest.raises(InvalidWebhook):
        verify(one.body + b" ", one.headers, SECRET)
    assert one.verified().id != two.verified(PARTNER).id
    failed = audited.submit({"fail": True})
    with pytest.raises(JobFailed):
        failed.result(timeout=30)
    payload = requests(place, receiver, 3)[2].verified().body
    assert (payload["type"], payload["data"]["error"][:28]) == ("audit.broken", "Permanent: it cannot be done")


def told_at(place: Place, job: UUID) -> str:
    """As the payload has it."""
    return f"{place.job(job)['completed_at'].astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def test_it_is_submitted_by_itself_and_tried_again_under_one_id(place: Place, receiver: Receiver) -> None:
    """503 costs an attempt, 429 with Retry-After is a wait; the receiver can tell a repeat by the id."""
    worker(place, receiver)
    receiver.answers += [Answer(503), Answer(429, {"Retry-After": "1"}), Answer(301, {"Location": "/elsewhere"})]
    job = webhook.submit(Webhook(url=receiver.url, type="invoice.paid", data={"invoice": 17}))
    assert job.result(timeout=30) == 204
    assert outcomes(place, job.id) == ["retried", "snoozed", "retried", "succeeded"]
    told = [request.verified() for request in receiver.requests]
    assert {one.id for one in told} == {f"{job.id}:deliver"} and len(told) == 4
    assert len({request.body for request in receiver.requests}) == 1
    assert told[0].body["type"] == "invoice.paid" and told[0].body["data"] == {"invoice": 17}
    assert told[-1].sent_at > told[0].sent_at
    assert receiver.requests[0].headers["traceparent"].startswith("00-")
    # From SQL a body is enough.
    [row] = place.rows("SELECT pipeline.submit('webhook', %s) AS id", json.dumps({"url": receiver.url, "order": 3}))
    place.finished(row["id"])
    assert receiver.requests[-1].verified().body["data"] == {"order": 3}


def test_a_receiver_that_says_no_is_not_asked_again(place: Place, receiver: Receiver) -> None:
    worker(place, receiver)
    receiver.answers += [Answer(410)]
    job = webhook.submit(Webhook(url=f"{receiver.url}?token=very-private"))
    with pytest.raises(JobFailed, match=r"http://127\.0\.0\.1 answered 410 Gone"):
        job.result(timeout=30)
    assert outcomes(place, job.id) == ["failed"] and "very-private" not in place.logs()


def test_a_receiver_that_hangs_or_talks_too_much_is_left(place: Place, receiver: Receiver) -> None:
    """A second is all it gets; of its answer the status counts, whatever follows."""
    worker(place, receiver, PIPELINE_WEBHOOK_SECONDS="0.5")
    receiver.answers += [Answer(after=3), Answer(200, body=b"x" * 5_000_000)]
    job = webhook.submit(Webhook(url=receiver.url))
    assert job.result(timeout=30) == 200
    assert outcomes(place, job.id) == ["retried", "succeeded"]
    assert "ReadTimeout" in str(place.attempts(job.id)[0]["error"])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("{receiver}", "loopback"),
        ("http://10.0.0.8/hooks", "private"),
        ("https://169.254.169.254/latest/meta-data", "link-local"),
        ("https://[::1]/hooks", "loopback"),
        ("https://localhost/hooks", "private network"),
        ("https://user:pass@example.org/", "user name or password"),
        ("http://example.org/hooks", "only https is spoken"),
    ],
)
def test_what_is_not_a_public_address_is_refused_at_once(url: str, said: str, receiver: Receiver) -> None:
    """And nothing is sent: in memory, where the settings are the defaults."""
    error = told_in_memory(url.format(receiver=receiver.url), PIPELINE_WEBHOOK_SECRETS=SECRET)
    assert said in error and "pass" not in error.replace("password", "")
    assert receiver.requests == []


def test_a_private_address_is_refused_by_a_real_worker_until_it_is_allowed(place: Place, receiver: Receiver) -> None:
    worker(place, receiver, PIPELINE_WEBHOOK_ALLOWED_HOSTS="")
    job = webhook.submit(Webhook(url=receiver.url))
    with pytest.raises(JobFailed, match="is loopback, not public"):
        job.result(timeout=30)
    assert receiver.requests == [] and outcomes(place, job.id) == ["failed"]


def test_without_its_secret_it_fails_and_says_what_to_set() -> None:
    """The secret of a setting that is wrong is not repeated."""
    assert "PIPELINE_WEBHOOK_SECRETS has no secret 'default'" in told_in_memory("https://example.org/")
    wrong = told_in_memory("https://example.org/", PIPELINE_WEBHOOK_SECRETS="whsec_tooshort")
    assert "24 to 64 random bytes" in wrong and "tooshort" not in wrong


def test_a_new_secret_signs_beside_the_old_one(place: Place, receiver: Receiver) -> None:
    """Receivers with either are content; none of the two is in the database or the log."""
    worker(place, receiver, PIPELINE_WEBHOOK_SECRETS=f"default:{SECRET},{OLDER}")
    job = webhook.submit(Webhook(url=receiver.url))
    assert job.result(timeout=30) == 204
    [request] = receiver.requests
    assert request.verified(SECRET) == request.verified(OLDER)
    rows = place.rows("SELECT j::text AS said FROM pipeline.jobs j UNION ALL SELECT a::text FROM pipeline.attempts a")
    said = "".join(row["said"] for row in rows) + place.logs()
    assert not [secret for secret in (SECRET, OLDER) if secret in said or secret.removeprefix("whsec_") in said]


def told_in_memory(url: str, **settings: Any) -> str:
    """The error of a job that cannot be delivered."""
    from pipeline.testing import in_memory
    from pipeline.webhooks import config

    config.get.cache_clear()
    with pytest.MonkeyPatch.context() as patch, in_memory() as run:
        for name in ("SECRETS", "ALLOWED_HOSTS", "ALLOW_PRIVATE"):
            patch.delenv(f"PIPELINE_WEBHOOK_{name}", raising=False)
        for name, value in settings.items():
            patch.setenv(name, value)
        job = run.submit(webhook, {"url": url})
        run.drain()
    config.get.cache_clear()
    assert job.outcomes == [("deliver", "failed")], job
    return str(job.error)
