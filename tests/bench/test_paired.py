"""A ratio is the median of the rounds' own ratios, and the page knows every figure that was promised."""

from __future__ import annotations

from collections.abc import Iterator

from bench.page import COSTS, USERS, body
from bench.paired import RATE, Measured, Ratio, Rounds, merge, real

PROMISED = {
    "defaults_vs_dramatiq",
    "defaults_vs_dramatiq_confirmed",
    "pooled_vs_unpooled",
    "writes_vs_dramatiq_insert",
    "writes_vs_naive_insert",
    "submit_32_vs_insert",
    "workflows_300_vs_1",
    "threads_300",
    "snapshot_vs_none",
    "half_load_p99_vs_bare",
    "idle_latency_ratio",
}
SETUP = {"command": "script/bench", "cores": 2, "processes": 2, "threads": 16, "rounds": 3, "seconds": 1}


def side(*rates: float) -> Iterator[Measured]:
    return iter([{RATE: rate} for rate in rates])


def test_a_ratio_compares_what_two_sides_did_in_the_same_round() -> None:
    # A machine that becomes ten times as slow: the ratio of the medians would be 5.
    ours, theirs = side(1000, 500, 50), side(500, 100, 100)
    rounds = Rounds({"ours": lambda: next(ours), "theirs": lambda: next(theirs)}, 3)
    assert rounds.ratio("ours", "theirs") == Ratio(2.0, 0.5, 5.0)
    assert rounds.rates("ours") == {"jobs_per_s": {"ours": 500}, "rounds": {"ours": [1000, 500, 50]}}


def test_each_side_goes_first_in_its_turn() -> None:
    order: list[str] = []

    def turn(name: str) -> Measured:
        order.append(name)
        return {RATE: 1.0}

    Rounds({"a": lambda: turn("a"), "b": lambda: turn("b")}, 2)
    assert order == ["a", "b", "b", "a"]


def test_figures_of_several_rows_become_one_table_with_their_spread() -> None:
    figures = merge(real(one=Ratio(1.234, 1.0, 2.0)), real(two=Ratio(3, 3, 3)))
    assert figures == {"real": {"one": 1.23, "two": 3}, "spread": {"one": [1.0, 2.0], "two": [3, 3]}}


def test_the_page_has_a_line_for_each_promise_and_says_what_was_not_measured() -> None:
    lines = {promise.place.removeprefix("real.") for promise in USERS}
    assert lines >= PROMISED
    written = body({"setup": SETUP, "jobs_per_s": {}, "rounds": {}, "real": {"threads_300": 60}})
    assert "| threads a process with 300 workflows | 60 |" in written
    assert written.count("not measured") == len(USERS) + len(COSTS) - 1
