"""Signatures of webhooks, as Standard Webhooks has them; what a receiver needs, with nothing but Python's own."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.declare.errors import BadInput

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX, VERSION = "whsec_", "v1,"
SHORTEST, LONGEST = 24, 64
TOLERANCE = timedelta(minutes=5)
# A rotation has two; each costs the receiver a comparison.
MOST_SIGNATURES = 10


class InvalidWebhook(BadInput):
    """The request was not signed with the secret, or too long ago: answer 401, and do nothing else.

    >>> verify(b"{}", {}, "whsec_" + "A" * 32)
    Traceback (most recent call last):
    pipeline.webhooks.signature.InvalidWebhook: not a signed webhook: it has no header webhook-id, ...
    """


@dataclass(frozen=True)
class Received:
    """A webhook whose signature was right. ``id`` is the same however often it is sent: do what it asks for once an id.

    >>> received = Received("msg-1", datetime.now(UTC), {"type": "order.paid"})
    >>> received.body["type"]
    'order.paid'

    ``sent_at``: this attempt's. ``body``: what the JSON says.
    """

    id: str
    sent_at: datetime
    body: Any


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: timedelta = TOLERANCE,
    now: float | None = None,
) -> Received:
    """What a webhook says, if it was signed with the secret (of several: with any) and sent just now.

    >>> verify(request.body, request.headers, secret).body["type"]
    'orders.succeeded'

    ``body`` is the body of the request as it came: JSON that was read and written again has another signature.
    InvalidWebhook otherwise.
    """
    keys = [decode_secret(one) for one in ([secret] if isinstance(secret, str) else secret)]
    given = {name.lower(): value for name, value in headers.items()}
    if missing := [name for name in (ID, TIMESTAMP, SIGNATURE) if not given.get(name)]:
        raise InvalidWebhook(f"not a signed webhook: it has no header {', '.join(missing)}")
    sent_at = _sent_at(given[TIMESTAMP], tolerance, time.time() if now is None else now)
    signatures = given[SIGNATURE].split(" ", MOST_SIGNATURES)[:MOST_SIGNATURES]
    right = [_signature(key, given[ID], given[TIMESTAMP], body) for key in keys]
    # Each is compared with each, in constant time, so that the time taken tells nothing.
    same = [hmac.compare_digest(_bytes(one), _bytes(other)) for one in right for other in signatures]
    if not any(same):
        raise InvalidWebhook("the signature is not one of this secret and this body")
    return Received(given[ID], datetime.fromtimestamp(sent_at, UTC), _read(body))


def sign(keys: Sequence[bytes], message: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers. Of several keys, each signs: a receiver that knows one of them is content."""
    at = str(timestamp)
    signatures = " ".join(_signature(key, message, at, body) for key in keys)
    return {ID: message, TIMESTAMP: at, SIGNATURE: signatures}


def decode_secret(secret: str) -> bytes:
    """The key in a secret. BadInput, which does not repeat it, if it is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        raise BadInput(
            f"a secret of webhooks is {PREFIX} and the base64 of {SHORTEST} to {LONGEST} random bytes: "
            f'make one with: echo "{PREFIX}$(openssl rand -base64 32)"'
        )
    return key


def _signature(key: bytes, message: str, timestamp: str, body: bytes) -> str:
    signed = _bytes(f"{message}.{timestamp}.") + body
    return VERSION + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def _bytes(text: str) -> bytes:
    """``compare_digest`` takes no text with other letters than ASCII's."""
    return text.encode("utf-8", "surrogatepass")


def _sent_at(timestamp: str, tolerance: timedelta, now: float) -> int:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise InvalidWebhook(f"the header {TIMESTAMP} is not a moment in seconds")
    away, fine = now - int(timestamp), tolerance.total_seconds()
    if abs(away) > fine:
        when = "ago" if away > 0 else "ahead"
        raise InvalidWebhook(f"the webhook was sent {abs(away):.0f} s {when}, and {fine:.0f} s are allowed")
    return int(timestamp)


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidWebhook("the body is not valid JSON") from None
