"""What an application's own routes are written with: who may call, pages, problems, a transaction.

Register them with ``pipeline.extend(..., routes=["shop.routes:router"])``; they are served beside ``/v1``.
"""

from __future__ import annotations

from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.cursors import decode_cursor
from pipeline.front.api.http.fields import Text
from pipeline.front.api.http.pages import Cursor, Limit, Page, cut
from pipeline.front.api.http.problem import Problem, conflict, invalid, not_found
from pipeline.front.api.http.responses import problems
from pipeline.front.api.http.shield import allow_body
from pipeline.front.api.http.streamed import pieces
from pipeline.front.database import transaction

__all__ = [
    "Cursor",
    "Limit",
    "Operator",
    "Page",
    "Problem",
    "Text",
    "Viewer",
    "allow_body",
    "conflict",
    "cut",
    "decode_cursor",
    "invalid",
    "not_found",
    "pieces",
    "problems",
    "transaction",
]
