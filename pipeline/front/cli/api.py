"""The command that serves the HTTP API."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipeline.declare.extras import require
from pipeline.front.cli.workflows import need_workflows


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(api)


def api(
    host: Annotated[str | None, typer.Option(help="Address to listen on; by default PIPELINE_API_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; by default PIPELINE_API_PORT. 0 takes a free one.")] = None,
) -> None:
    """Serve the HTTP API (see docs/api.md)."""
    require("api", "the HTTP API")
    need_workflows()  # they say how to read what they stored
    from pipeline import settings
    from pipeline.front.api.serve import server
    from pipeline.observe import logs

    config = settings.get()
    logs.configure(config.log_format, config.log_level)
    running = server(config, host, port)
    running.run()
    if not running.started:
        sys.exit(3)
