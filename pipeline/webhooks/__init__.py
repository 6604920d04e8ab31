"""Webhooks: a workflow that tells an address of something, and what its receivers verify that with.

>>> from pipeline.webhooks import webhook
>>> audit.on_success(webhook, url="https://example.org/audits")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.webhooks.delivery import Webhook, webhook
    from pipeline.webhooks.signature import InvalidWebhook, Received, verify

__all__ = ["InvalidWebhook", "Received", "Webhook", "verify", "webhook"]

# Resolved at first use: receivers need no extra, and a process that sends none declares no workflow.
_HOMES = {
    "Webhook": "pipeline.webhooks.delivery",
    "webhook": "pipeline.webhooks.delivery",
    "InvalidWebhook": "pipeline.webhooks.signature",
    "Received": "pipeline.webhooks.signature",
    "verify": "pipeline.webhooks.signature",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'pipeline.webhooks' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
