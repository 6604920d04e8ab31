"""Jobs of the phase, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.declare.job import Job
from pipeline.testing import FakeServices


def job(kept: list[Mapping[str, Any]] | None = None, permits: list[tuple[str, int]] | None = None, **row: Any) -> Job:
    def keep(_: str, values: Mapping[str, Any]) -> bool:
        assert kept is not None
        kept.append(values)
        return True

    return Job(
        body={"project_id": 1, "task_id": 7, "dataset_entry_id": 7},
        services=FakeServices(
            keep=keep,
            read=lambda statement, values: [row] if row else [],
            take_permit=lambda rate_limit, calls: permits.append((rate_limit, calls)) if permits is not None else None,
        ),
    )
