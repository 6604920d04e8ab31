"""Links that tell a job of an event, with the secret and the address of the settings."""

from __future__ import annotations

from datetime import timedelta
from time import time
from uuid import UUID

from pipeline import settings
from pipeline.declare.errors import BadInput
from pipeline.declare.waits.links import Link, new_link, read, sign

SHORTEST = 32


def event_link(
    job: UUID,
    event: str,
    *,
    expires: timedelta,
    body: object = None,
    fence: int | None = None,
    config: settings.Settings | None = None,
) -> str:
    """The address at which whoever has it can tell the job of the event. BadInput if no secret is set."""
    known = config or settings.get()
    token = sign(_secrets(known)[0], new_link(job, event, expires, body, fence=fence, now=time()))
    return f"{known.address_of_api}/v1/events/{token}"


def read_token(config: settings.Settings, token: str) -> Link:
    """What a link's token says. BadLink, ExpiredLink, or BadInput if no secret is set."""
    return read(_secrets(config), token, time())


def _secrets(config: settings.Settings) -> list[bytes]:
    setting = config.event_secret
    parts = [part.strip() for part in (setting.get_secret_value() if setting else "").split(",") if part.strip()]
    if not parts:
        raise BadInput(
            "links for events need a secret: set PIPELINE_EVENT_SECRET, the same for workers and the API "
            "(make one with: openssl rand -hex 32)"
        )
    if any(len(part) < SHORTEST for part in parts):
        raise BadInput(f"PIPELINE_EVENT_SECRET: a secret has at least {SHORTEST} characters (openssl rand -hex 32)")
    return [part.encode() for part in parts]
