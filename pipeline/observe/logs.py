"""Structured logs, for people on a console or as JSON."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from pipeline.observe import lines


def configure(log_format: str, level: str) -> None:
    """Route structlog and the standard library's logging through one renderer to standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        lines.whose,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    renderer: Any = (
        structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                lines.keep,
                renderer,
            ],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # pika reports every lost connection several times over; the link says it once.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    for chatty in ("httpx", "httpcore", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def get(name: str) -> Any:
    """A logger that takes keyword context: ``log.info("claimed", job=…, fence=…)``."""
    return structlog.get_logger(name)
