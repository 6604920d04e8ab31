"""A folder of private servers that somebody moved: the data are used where they are now, and nobody is told to delete them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.dev.services import ServiceError
from pipeline.dev.services.postgres_cluster import prepare_cluster
from pipeline.dev.services.state import State


@pytest.fixture
def moved(tmp_path: Path) -> tuple[Path, State]:
    """What is recorded is where they were."""
    folder = tmp_path / "new" / ".pipeline"
    (folder / "postgres" / "data").mkdir(parents=True)
    state = State(folder, "postgres")
    state.update(place=str(tmp_path / "old" / ".pipeline" / "postgres"), initialised=True)
    return folder, state


def test_data_that_moved_with_their_folder_are_found(moved: tuple[Path, State]) -> None:
    folder, state = moved
    assert prepare_cluster(folder, state) == folder / "postgres" / "data"
    assert state.read()["place"] == str(folder / "postgres")


def test_data_that_are_gone_are_to_be_moved_back_before_anything_is_removed(moved: tuple[Path, State]) -> None:
    folder, state = moved
    (folder / "postgres" / "data").rmdir()
    with pytest.raises(ServiceError, match="move it back to there") as refused:
        prepare_cluster(folder, state)
    assert "Only if nothing in it is needed any more" in str(refused.value)
