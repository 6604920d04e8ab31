"""What a phase may return."""

from __future__ import annotations

from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.job import Done, as_done


def test_nothing_is_a_success_without_a_result() -> None:
    """Most phases end without a return."""
    assert as_done(None) == Done()


@given(st.dictionaries(st.text(), st.integers()))
def test_a_mapping_is_the_result(result: dict[str, int]) -> None:
    """Any mapping, the empty one too."""
    assert as_done(result) == Done(result=result)
    assert as_done(MappingProxyType(result)).result == result


def test_a_function_is_the_write() -> None:
    """It runs in the transaction that ends the phase."""

    def write(connection: object) -> None: ...

    assert as_done(write) == Done(write=write)


def test_a_done_stays_itself() -> None:
    """Nothing is lost on the way."""
    done = Done(result={"n": 1}, write=lambda connection: None)
    assert as_done(done) is done


@given(st.text() | st.integers() | st.lists(st.integers()) | st.booleans() | st.floats())
def test_anything_else_is_the_result(value: object) -> None:
    """Whether it can travel is seen when it is encoded."""
    assert as_done(value) is not value
    assert as_done(value).result is value
