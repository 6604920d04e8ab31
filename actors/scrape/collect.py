"""Ask for an intake's prices: one job a source, and the valuation when the last of them is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Connection, text

from pipeline import readable_errors

COLLECT = text("SELECT scrape_collect(:intake, cast(:sources as text[]), cast(:params as jsonb), :priority)")


def collect(
    connection: Connection,
    intake_id: str,
    source_ids: Sequence[str],
    params: Mapping[str, Any] | None = None,
    priority: int = 0,
) -> list[UUID]:
    """Submit the jobs in the caller's transaction. Raises BadInput for an intake or a source that does not exist."""
    values = {
        "intake": intake_id,
        "sources": list(source_ids),
        "params": orjson.dumps(dict(params or {})).decode(),
        "priority": priority,
    }
    with readable_errors():
        return list(connection.execute(COLLECT, values).scalars())
