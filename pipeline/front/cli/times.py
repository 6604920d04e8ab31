"""Lengths of time as people type them."""

from __future__ import annotations

import re

from pipeline.declare.errors import BadInput

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 366 * 86400


def seconds_of(option: str, time: str) -> float:
    """The seconds of ``30s``, ``10m``, ``2h`` or ``1d``; ``option`` is named where it is none of these."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", time.strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST:
        raise BadInput(f"{option} takes a time of up to a year, such as 30s, 10m, 2h or 1d, not {time!r}")
    return seconds
