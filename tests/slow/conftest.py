"""Settings as they are when nobody sets any: two addresses, and time enough."""

from __future__ import annotations

import pytest

from pipeline import settings
from tests.place import Place

OPTIONAL = frozenset({
    "RABBITMQ_MANAGEMENT_URL", "PIPELINE_PATIENCE_SECONDS", "PIPELINE_HEALTH_SECONDS", "PIPELINE_HEARTBEAT_SECONDS",
})  # fmt: skip


@pytest.fixture
def default(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place without any optional setting."""
    place.unset = OPTIONAL
    for name in OPTIONAL:
        monkeypatch.delenv(name, raising=False)
    settings.get.cache_clear()
    return place
