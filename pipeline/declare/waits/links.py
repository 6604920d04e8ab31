"""Links that tell a job of an event: what one says, and the signature without which nobody reads it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import orjson

from pipeline.declare.errors import BadInput
from pipeline.declare.job import PLAIN
from pipeline.declare.waits.next import check_event, seconds_of

# Of the JSON that a link tells: the whole link has to fit into a line of a mail.
LONGEST_BODY = 1024
LONGEST_TOKEN = 4096
# So that a signature made for something else with the same secret is not one of a link.
PURPOSE = b"pipeline event link 1\n"


class BadLink(BadInput):
    """The link was not signed here, or not as it is now."""


class ExpiredLink(BadInput):
    """The link's time is over."""


@dataclass(frozen=True)
class Link:
    """Whoever has it may tell this job of this event, once, until it expires (seconds since 1970).

    ``fence``: of the attempt that made it; None outside of a phase. ``body``: the JSON that is told; None if that is
    the sender's to say.
    """

    job: UUID
    event: str
    expires: int
    fence: int | None = None
    body: str | None = None


def new_link(job: UUID, event: str, expires: timedelta, body: object, *, fence: int | None, now: float) -> Link:
    """Misuse or BadInput if it cannot be meant."""
    try:
        told = None if body is None else PLAIN.encode(body).decode()
    except ValueError as error:
        raise BadInput(f"the body of event {event!r} is not valid JSON: {error}") from None
    if told is not None and len(told.encode()) > LONGEST_BODY:
        raise BadInput(f"the body of a link has at most {LONGEST_BODY} bytes, not {len(told.encode())}")
    return Link(job, check_event(event), int(now + seconds_of("expires", expires)), fence, told)


def sign(secret: bytes, link: Link) -> str:
    """The link's token: letters, digits, ``-``, ``_`` and one dot."""
    said = orjson.dumps([link.job.hex, link.event, link.expires, link.fence, link.body])
    return f"{_text(said)}.{_text(_signature(secret, said))}"


def read(secrets: Sequence[bytes], token: str, now: float) -> Link:
    """What a token says that one of the secrets signed. BadLink, or ExpiredLink."""
    said, signature = _parts(token)
    # Each is compared, in constant time, so that the time taken tells nothing.
    known = [hmac.compare_digest(_signature(secret, said), signature) for secret in secrets]
    if not any(known):
        raise BadLink("the link is not valid: was it copied whole?")
    # Only what we wrote ourselves is read.
    job, event, expires, fence, body = orjson.loads(said)
    if expires <= now:
        raise ExpiredLink("the link has expired: ask for a new one")
    return Link(UUID(job), event, expires, fence, body)


def _signature(secret: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, PURPOSE + said, hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _parts(token: str) -> tuple[bytes, bytes]:
    try:
        if len(token) > LONGEST_TOKEN:
            return b"", b""
        said, signature = (base64.urlsafe_b64decode(f"{part}===") for part in token.split("."))
    except ValueError:
        return b"", b""
    return said, signature
