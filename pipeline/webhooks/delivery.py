"""The workflow ``webhook``: tells an address of something, signed, until that answers that it knows."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pipeline.declare.backoff import Backoff
from pipeline.declare.errors import BadInput, Permanent
from pipeline.declare.job import Job, encode
from pipeline.http.addresses import AddressPolicy, Target, vet_url
from pipeline.http.client import post
from pipeline.http.refusals import answered, refusal, unreachable
from pipeline.webhooks import config
from pipeline.webhooks.signature import sign
from pipeline.workflow import Workflow

# 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h and then every 6 h: about a day in all.
ATTEMPTS = 12
BACKOFF = Backoff(schedule=(5.0, 30.0, 120.0, 600.0), base=1800.0, cap=6 * 3600.0)
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


class Webhook(BaseModel):
    """What is told to whom. ``data`` is any JSON; without it, it is whatever else the body has, as a hook's has.

    ``secret``: the name of the one that signs, in ``PIPELINE_WEBHOOK_SECRETS``. ``type``: of the event; a hook's is the
    job's workflow and how it ended, such as ``audit.failed``.
    """

    model_config = ConfigDict(extra="allow")

    url: Annotated[str, Field(pattern=r"^[hH][tT][tT][pP][sS]?://", max_length=2048)]
    type: Annotated[str, Field(max_length=200)] = ""
    data: Any = None
    secret: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,60}$")] = config.DEFAULT
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))


webhook = Workflow("webhook", body=Webhook, result=int)
"""A workflow that POSTs to an address, signed, until that answers that it knows: ``Workflow[Webhook, int]``.

>>> job = webhook.submit(Webhook(url="https://example.org/orders", type="order.paid", data={"order": 17}))
>>> orders.on_success(webhook, url="https://example.org/orders")
"""


@webhook.phase(max_attempts=ATTEMPTS, backoff=BACKOFF, time_limit=60)
async def deliver(job: Job[Webhook]) -> int:
    """The status of the answer, which is a success. Anything else is tried again, waited for as asked, or fails."""
    known = config.get()
    target = _target(job.body.url, known.policy)
    content = content_of(job.body)
    headers = {**HEADERS, "traceparent": job.traceparent, **_signed(known, job, content)}
    # The rest of an address may be as good as a password.
    who = f"{target.scheme}://{target.host}"
    with unreachable(who):
        answer = await post(target.url, content, policy=known.policy, limits=known.limits, headers=headers)
    if not 200 <= answer.status < 300:
        raise refusal(answered(who, answer.status), answer.status, answer.headers)
    return answer.status


def content_of(body: Webhook) -> bytes:
    """The JSON that is sent: the same at every attempt."""
    extra = dict(body.model_extra or {})
    event = body.type or ".".join(str(extra[name]) for name in ("workflow", "state") if name in extra) or "message"
    moment = extra.pop("ended_at", None) or body.timestamp
    return encode({"type": event, "timestamp": moment, "data": extra if body.data is None else body.data})


def _target(url: str, policy: AddressPolicy) -> Target:
    target = vet_url(url, policy)
    private = policy.allow_private or policy.vouches_for(target.host, target.port)
    if target.scheme != "https" and not private:
        raise Permanent(f"webhook to {target.host} is refused: only https is spoken, so that nobody reads along")
    return target


def _signed(known: config.WebhookSettings, job: Job[Webhook], content: bytes) -> dict[str, str]:
    try:
        keys = known.keys(job.body.secret)
    except BadInput as error:
        raise Permanent(str(error)) from None
    return sign(keys, job.idempotency_key, int(time.time()), content)
