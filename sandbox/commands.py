"""The command that runs the sandbox."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(sandbox)


def sandbox(port: int = 8099, host: str = "127.0.0.1") -> None:
    """Run the sandbox that speaks for the outside systems (see docs/sandbox.md)."""
    from sandbox.server import serve

    serve(host, port)
