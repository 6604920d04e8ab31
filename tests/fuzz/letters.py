"""Messages that pretend to be ours."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from pipeline.journey.message import compose, encode
from tests.fuzz.spoil import spoil, spoil_bytes, value

QUEUE, ACTOR = "triple.first", "triple.first"
OTHERS = ["triple.second", "pipeline.prune", "pipeline.stale_recovery", "plain.alpha", "", "no.such", "__class__"]
OPTIONS = [
    "eta",
    "retries",
    "max_retries",
    "pipe_target",
    "traceback",
    "scheduled_at",
    "redis_message_id",
    "group_completion_uuid",
]


def good(job: UUID, send: int = 1) -> bytes:
    """As the relay sends it."""
    message = compose(
        job_id=job,
        queue=QUEUE,
        actor=ACTOR,
        send=send,
        attempt=1,
        max_attempts=3,
        sent_at=datetime(2030, 1, 1, tzinfo=UTC),
        priority=0,
        body='{"n": 1}',
        trace_id="a" * 32,
        span_id="b" * 16,
    )
    return encode(message)


def bad(job: UUID, dice: random.Random) -> tuple[str, bytes]:
    """Its kind, and the bytes."""
    whole: dict[str, Any] = orjson.loads(good(job))
    match dice.randrange(20):
        case 0:
            return "raw bytes", dice.randbytes(dice.randrange(200))
        case 1 | 2 | 3:
            return "spoiled bytes", spoil_bytes(good(job), dice)
        case 4:
            return "any JSON", _json(value(dice))
        case 5:
            return "foreign actor", _json({**whole, "actor_name": dice.choice([*OTHERS, value(dice)])})
        case 6 | 7:
            return "foreign options", _json({**whole, "options": {dice.choice(OPTIONS): value(dice), "n": 1}})
        case 8:
            return "bare argument", _json({**whole, "args": [value(dice)]})
        case 9:
            return "deep", b"[" * (depth := dice.randrange(2, 100_000)) + b"]" * depth
        case 10 if dice.random() < 0.02:
            return "too large", _json({**whole, "args": ["x" * 300_000]})
        case 10 | 11 | 12 | 13:
            envelope = spoil(whole["args"][0], dice)
            return "spoiled envelope", _json({**whole, "args": [envelope]})
        case 14 | 15:
            header = whole["args"][0]["header"]
            header[dice.choice(list(header))] = value(dice)
            return "spoiled header", _json(whole)
        case _:
            return "spoiled message", _json(spoil(whole, dice))


def _json(what: Any) -> bytes:
    return orjson.dumps(what, option=orjson.OPT_NON_STR_KEYS)
