"""Reading order and boosting: pure rules on lines with places."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.document.boost import boost_document, boost_page, join_lines, tidy
from actors.document.layout import Line, paragraphs
from actors.document.local_engine import straighten


def printed(text: str, x: float, y: float, width: float = 200.0) -> Line:
    return Line(text, 1.0, x, y, x + width, y + 20.0)


def column(name: str, x: float, count: int, top: float = 100.0) -> list[Line]:
    return [printed(f"{name}{n}", x, top + 30.0 * n) for n in range(count)]


def test_two_columns_are_read_one_after_the_other_below_their_headline() -> None:
    """The headline hides the gutter between them and must be cut off first."""
    lines = [printed("title", 50, 10, 500), *column("right", 320, 5), *column("left", 50, 5)]
    assert paragraphs(lines) == [["title"], [f"left{n}" for n in range(5)], [f"right{n}" for n in range(5)]]


def test_three_columns_between_lines_of_full_width_are_read_in_order() -> None:
    """What follows them comes last, its short headline too."""
    columns = [*column("c", 620, 3), *column("a", 50, 5), *column("b", 335, 4)]
    below = [printed("headline", 50, 310, 180), printed("end", 50, 340, 770)]
    text = [line for group in paragraphs([*below, *columns, printed("title", 50, 10, 770)]) for line in group]
    names = [f"{name}{n}" for name, count in (("a", 5), ("b", 4), ("c", 3)) for n in range(count)]
    assert text == ["title", *names, "headline", "end"]


def test_the_blocks_of_a_letter_are_read_from_top_to_bottom() -> None:
    """Left and right alternate, but nothing stands beside anything."""
    sender, receiver = column("sender", 50, 3), column("receiver", 400, 3, top=200)
    lines = [*sender, *receiver, *column("subject", 50, 3, top=320)]
    assert [line for group in paragraphs(lines[::-1]) for line in group] == [line.text for line in lines]


def test_a_table_is_read_row_by_row() -> None:
    """Short cells far apart are no columns of running text."""
    names = [printed(f"name{n}", 50, 100 + 30 * n, 60 + 100 * (n == 1)) for n in range(4)]
    sums = [printed(f"{n} €", 500, 100 + 30 * n, 20 + 60 * (n == 2)) for n in range(4)]
    assert paragraphs([*sums, *names]) == [[f"name{n} {n} €" for n in range(4)]]


def test_a_wider_gap_begins_a_paragraph() -> None:
    """Half a line more than usual is enough."""
    assert paragraphs([*column("a", 50, 3), *column("b", 50, 3, top=220)]) == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]


def test_an_empty_page_has_no_paragraphs() -> None:
    """Nor an error."""
    assert paragraphs([]) == [] and boost_page([]) == "" and boost_document(["", " "]) == ""


@given(st.lists(st.tuples(st.floats(0, 2000), st.floats(0, 3000), st.floats(1, 2000), st.floats(1, 80)), max_size=40))
def test_every_line_is_read_exactly_once(places: list[tuple[float, float, float, float]]) -> None:
    """Wherever lines stand, none is lost and none is doubled."""
    lines = [Line(f"w{n}", 1.0, x, y, x + w, y + h) for n, (x, y, w, h) in enumerate(places)]
    words = " ".join(text for group in paragraphs(lines) for text in group).split()
    assert sorted(words) == sorted(f"w{n}" for n in range(len(places)))


def test_a_page_that_lay_askew_is_straightened() -> None:
    """Two words of one row stand at one height again."""
    tilt = math.radians(3)

    def turned(x: float, y: float) -> list[float]:
        return [x * math.cos(tilt) - y * math.sin(tilt), x * math.sin(tilt) + y * math.cos(tilt)]

    boxes = [[turned(x, 50), turned(x + 90, 50), turned(x + 90, 70), turned(x, 70)] for x in (0, 900)]
    left, right = straighten(boxes, tilt, [("a", 1.0), ("b", 1.0)])
    assert left.middle == pytest.approx(right.middle) == pytest.approx(60)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["les applaudis-", "sements"], "les applaudissements"),
        (["où êtes-", "vous né ?"], "où êtes-vous né ?"),
        (["la Forêt-", "Brûlée"], "la Forêt-Brûlée"),
        (["de 1939-", "1945"], "de 1939- 1945"),
        (["un mot —", "un autre"], "un mot — un autre"),
        (["", "seul", ""], "seul"),
    ],
)
def test_words_broken_at_the_end_of_a_line_are_whole_again(lines: list[str], text: str) -> None:
    """But a hyphen that belongs to the word stays."""
    assert join_lines(lines) == text


def test_a_paragraph_that_runs_over_the_page_is_one() -> None:
    """Unless its sentence had ended."""
    assert boost_document(["Il arri-", "va tard."]) == "Il arriva tard."
    assert boost_document(["la grande", "", "forêt."]) == "la grande forêt."
    assert boost_document(["Fin.", "suite"]) == "Fin.\n\nsuite"


def test_tidy_text_can_always_be_stored() -> None:
    """No NUL, no half characters; accents composed; single spaces."""
    assert tidy("e\u0301te\u0301\x00 \ud800\t\n \u00a0x ") == "été x"
