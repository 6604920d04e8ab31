"""Where tables are printed."""

from __future__ import annotations

import os
import sys

from rich.console import Console

# Into a pipe or a file nothing wraps, and what a narrow column cuts off is lost.
PIPED = 200


def console() -> Console:
    """As wide as the terminal, as ``COLUMNS`` says, or wide."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else PIPED)
