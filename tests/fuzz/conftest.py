"""What the fuzz tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.front.api.conftest import serve as serve  # the same real server


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A hundred thousand refusals, each with its line in the log, are nobody's reading."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
