"""What an application's own commands are written with: where tables are printed, a transaction.

Register them with ``pipeline.extend(..., commands=["shop.commands:add_to"])``.
"""

from __future__ import annotations

from pipeline.front.cli.console import console
from pipeline.front.database import transaction

__all__ = ["console", "transaction"]
