"""What the peers have in common: one byte for each job that is finished, and data to pass on."""

from __future__ import annotations

import os
from base64 import b64encode
from functools import lru_cache


def count() -> None:
    handle = os.open(os.environ["DONE_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, b".")
    os.close(handle)


@lru_cache
def text_of(size: int) -> str:
    """Letters that nothing can compress."""
    return b64encode(os.urandom(size)).decode()[:size]
