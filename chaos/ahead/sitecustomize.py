"""For a worker under faketime, whose ``clock_nanosleep`` mistakes the true clock for the faked time of day."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex) -> None:
    """As ``time.sleep``, by another system call."""
    select.select([], [], [], float(seconds))


time.sleep = sleep
