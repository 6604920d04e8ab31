"""How a child ended, as a phase of its parent reads it."""

from __future__ import annotations

from uuid import UUID

import pytest
from pydantic import BaseModel

from pipeline import End
from pipeline.declare.codec import codec_of
from pipeline.declare.errors import Misuse


class Page(BaseModel):
    title: str


def test_a_result_is_of_the_type_that_the_phase_names() -> None:
    """One that is not fails the job at once: no retry makes it fit."""
    good, bad = (
        End[Page](UUID(int=1), "succeeded", None, result, codec_of(Page)) for result in ({"title": "a"}, {"name": "a"})
    )
    assert good.result == Page(title="a")
    with pytest.raises(Misuse, match=r"child 0{8}.* title: Field required"):
        _ = bad.result
