"""Isolated phases without a worker: see tests/warm.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.declare import registry
from tests import warm_workflow
from tests.warm import Warm


@pytest.fixture
def only_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of this process have declared is not imported in the fork server."""
    monkeypatch.setattr(registry, "_workflows", {"warm": warm_workflow.warm._declared})


@pytest.fixture
def warm(only_warm: None, tmp_path: Path) -> Iterator[Warm]:
    made = Warm(tmp_path)
    yield made
    made.close()
