"""What a worker and its child processes say to each other: lines, each of them a JSON value, over a socket.

The worker sends an order. The child says that it BEGAN, perhaps that it is WAITING for a row that an application holds,
and gives its ANSWER. The fork server, which has the same end of the socket, adds DIED when it has reaped the child. By
itself it says that it is READY, or UNFIT to be forked.
"""

from __future__ import annotations

from typing import Any

import orjson

BEGAN, WAITING, ANSWER, DIED = "began", "waiting", "answer", "died"
# What is no line of ours: Python's last words, or the half of an answer.
SAID = "said"
READY, UNFIT = "ready", "unfit"


def line(kind: str, *content: object) -> bytes:
    return orjson.dumps([kind, *content], option=orjson.OPT_NON_STR_KEYS) + b"\n"


def read(text: bytes) -> tuple[str, Any]:
    """A line's kind and content."""
    try:
        kind, *content = orjson.loads(text)
    except ValueError:
        return SAID, text.decode(errors="replace")
    return kind, content[0] if content else None


# Shorter than every other line, so that a thread can sleep until there is more to hear than this.
BEGAN_LINE = line(BEGAN)
