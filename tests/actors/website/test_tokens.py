"""A cut text fits its budget and ends where a reader would pause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.website.tokens import CUT_MARK, cut_text, estimate_tokens

TEXT = "# Tea\nGreen tea is fresh. Black tea is strong. White tea is rare.\n## Cake\nCake is sweet and heavy."


def test_a_text_that_fits_is_left_alone() -> None:
    """Not a character is lost below the budget."""
    assert cut_text(TEXT, estimate_tokens(TEXT)) == TEXT


def test_a_cut_ends_with_a_sentence() -> None:
    """Whole sentences as long as that keeps most of what fits."""
    assert cut_text(TEXT, 20) == "# Tea\nGreen tea is fresh. Black tea is strong." + CUT_MARK


def test_a_heading_does_not_stay_behind_alone() -> None:
    """A heading whose paragraph is gone goes too."""
    upto_heading = TEXT[: TEXT.index("Cake is")]
    shortened = cut_text(TEXT, estimate_tokens(upto_heading) + estimate_tokens(CUT_MARK))
    assert shortened.endswith("White tea is rare." + CUT_MARK)


def test_languages_without_spaces_are_cut_at_their_full_stop() -> None:
    """A Japanese sentence ends at its own sign."""
    assert cut_text("土は山から採ります。" * 10, 40).endswith("。" + CUT_MARK)


def test_the_estimate_is_near_what_english_costs() -> None:
    """Plain English costs between one and two tokens a word."""
    words = "The quick brown fox jumps over the lazy dog near the river bank " * 20
    assert 1.0 <= estimate_tokens(words) / len(words.split()) <= 2.0


@given(st.text(max_size=800), st.integers(0, 300))
def test_a_cut_text_fits_and_is_a_beginning(text: str, budget: int) -> None:
    """For any text and any budget."""
    kept = cut_text(text, budget)
    assert estimate_tokens(kept) <= budget
    assert text.startswith(kept.removesuffix(CUT_MARK)) or kept == text


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_never_costs_less(one: str, other: str) -> None:
    """The estimate grows with the text."""
    assert estimate_tokens(one + other) >= max(estimate_tokens(one), estimate_tokens(other))
