"""Run the application with uvicorn, in one process."""

from __future__ import annotations

import uvicorn

from pipeline.declare.errors import BadInput
from pipeline.front.api.app import create_app
from pipeline.front.api.http.shield import is_loopback
from pipeline.settings import Settings


def server(settings: Settings, host: str | None = None, port: int | None = None) -> uvicorn.Server:
    """A server that is ready to run. Without tokens it listens on the loopback address only."""
    address = host or settings.api_host
    app = create_app(settings)
    if app.state.tokens is None and not is_loopback(address):
        raise BadInput(
            f"without PIPELINE_API_TOKENS the API listens on loopback only, not on {address}: "
            "set PIPELINE_API_TOKENS=operator:TOKEN (make one with: openssl rand -hex 24), or leave --host away"
        )
    config = uvicorn.Config(
        app,
        host=address,
        port=settings.api_port if port is None else port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=15,
        limit_concurrency=500,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """Tells endless answers to end when it stops, so that Ctrl-C is not kept waiting."""

    async def shutdown(self, *arguments: object, **named: object) -> None:
        self.config.app.state.stopping.set()  # type: ignore[union-attr]
        await super().shutdown(*arguments, **named)  # type: ignore[arg-type]
