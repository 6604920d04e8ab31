"""What a limit and a breaker may be called, and what of them is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typing_extensions import TypedDict

from pipeline import BadInput, Breaker, Job, Limit, Workflow
from pipeline.declare import registry
from pipeline.declare.waits.limits import check_filled, fields_of
from pipeline.store.limits.declared import declared


class Visit(TypedDict):
    shop: str


@pytest.fixture
def workflow(monkeypatch: pytest.MonkeyPatch) -> Workflow[Visit, object]:
    monkeypatch.setattr(registry, "_workflows", {})
    return Workflow("visits", body=Visit)


def act(job: Job[Visit]) -> None: ...


@pytest.mark.parametrize("name", ["", "{", "a{b", "a}b", "{}", "x" * 201, "{a{b}}"])
def test_a_name_has_its_braces_in_pairs_and_something_in_them(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a limit"):
        fields_of(name)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Limit("a", rate="fast"), "is not a rate"),
        (lambda: Limit("a", burst=3), "goes with a rate"),
        (lambda: Limit("a", rate="5/s", burst=0), "burst is 1 or more"),
        (lambda: Limit("a", calls=-1), "calls is a number"),
        (lambda: Breaker("a", failures=0), "failures is 1 or more"),
        (lambda: Breaker("a", pause=0), "pause is above zero"),
        (lambda: Breaker("a", probe=float("nan")), "probe is above zero"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


def test_a_limit_and_a_breaker_of_one_phase_have_one_name(workflow: Workflow[Visit, object]) -> None:
    """Otherwise the breaker would have no jobs to hold."""
    with pytest.raises(ValueError, match="one name for both"):
        workflow.phase(limit="a", breaker="b")
    spec = workflow.phase(limit=Limit("a", rate="30/min"), breaker="a")(act).spec
    assert spec.rate_limit == "a" and spec.limit is not None and spec.limit.declared == (0.5, 1.0)


def test_a_field_that_the_body_does_not_have_is_refused_where_the_phase_is_declared(
    workflow: Workflow[Visit, object],
) -> None:
    with pytest.raises(ValueError, match="the body has no field 'city' for the limit"):
        workflow.phase(limit="city:{city}")(act)
    workflow.phase(breaker="shop:{shop}")(act)


def test_a_name_without_its_rate_uses_the_one_that_another_phase_declares(workflow: Workflow[Visit, object]) -> None:
    """Two rates of one name contradict each other."""
    workflow.phase("one", limit="a")(act)
    workflow.phase("two", limit=Limit("a", rate="5/s"))(act)
    assert declared([workflow._declared]) == {"a": ("visits", (5.0, 5.0))}
    workflow.phase("three", limit=Limit("a", rate="6/s"))(act)
    with pytest.raises(ValueError, match="another rate"):
        declared([workflow._declared])


@pytest.mark.parametrize("body", ["{}", '{"shop": ""}', '{"shop": null}', '{"shop": true}', '{"shop": 1.5}'])
def test_a_body_that_does_not_fill_the_name_is_refused(body: str) -> None:
    """As pipeline.limit_name has it (tests/db/test_limits.py)."""
    with pytest.raises(BadInput, match="does not fill the limit"):
        check_filled("shop:{shop}", body)
    check_filled("shop:{shop}", '{"shop": 17}')
    check_filled("shop", body)


def test_inside_a_phase_a_breaker_has_its_whole_name() -> None:
    with pytest.raises(ValueError, match="without fields"):
        Breaker("shop:{shop}").calling(Job({}))
    with Breaker("shop").calling(Job({})):
        pass
