"""What an application's own commands are written with; register them with ``pipeline.extend(..., commands=[...])``."""

from __future__ import annotations

from pipeline.front.cli.console import console

__all__ = ["console"]
