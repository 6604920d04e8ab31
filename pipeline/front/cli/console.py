"""Where tables are printed."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

# Into a pipe or a file nothing wraps, and what a narrow column cuts off is lost.
PIPED = 200


def console() -> Console:
    """As wide as the terminal, as ``COLUMNS`` says, or wide.

    >>> console().print("3 orders are not paid")
    3 orders are not paid
    """
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else PIPED)
