"""Documents are read right, or with a doubt: a sample of the half for developing here, all of it in ``-m slow``."""

from __future__ import annotations

import pytest

from tests.measured.scans_figures import Page, measure, summary
from tests.measured.test_sets import rows

# Upside down and askew, sideways in two columns, three columns, hardly readable; the others bring their own text.
QUICK = {"d08", "d11", "d12", "d48", "d33", "d34", "d42"}
DIGITAL_SECONDS = 0.3


def check(pages: list[Page]) -> None:
    wrong = [str(page) for page in pages if not page.is_right or page.is_wrong_unnoticed]
    print(summary(pages), *wrong, sep="\n")
    assert wrong == []
    assert all(page.seconds < DIGITAL_SECONDS for page in pages if page.digital)


@pytest.mark.timeout(900)  # 20 s of CPU time, on machines that do much else
def test_a_sample_of_the_documents_is_read_right_or_with_a_doubt() -> None:
    """At least 98 % of the characters; what brings its own text takes less than 0.3 s a page."""
    check(list(measure(row for row in rows("scans", "develop") if row["id"] in QUICK)))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_documents_of_the_developing_half_are_read_right_or_with_a_doubt() -> None:
    """As the sample."""
    check(list(measure(rows("scans", "develop"))))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_page_of_the_measured_half_is_wrong_without_a_doubt() -> None:
    """The figures are for reading: python -m tests.measured.scans_figures measured."""
    pages = list(measure(rows("scans", "measured")))
    print(summary(pages))
    assert not [page.name for page in pages if page.is_wrong_unnoticed]
