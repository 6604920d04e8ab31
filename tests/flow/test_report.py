"""What the leader says in the log every health check."""

from __future__ import annotations

import re

from pipeline import submit_many
from tests.place import Place


def test_time_and_rates_of_each_phase_are_in_the_log(place: Place) -> None:
    """How many succeeded, failed and were retried, the share that succeeded, and the mean time of a success."""
    place.worker(PIPELINE_HEALTH_SECONDS="1")
    place.finished(*submit_many(None, "single", [{}, {}, {"do": "permanent"}]))
    place.until(lambda: (total(place, "succeeded"), total(place, "failed")) == (2, 1), 15, "the reports")
    assert any("success_rate=" in line and "mean_seconds=0" in line for line in said(place))


def test_what_ended_is_reported_once_however_late_the_report_comes(place: Place) -> None:
    """Each report begins where the last one ended."""
    place.worker(threads=2, PIPELINE_HEALTH_SECONDS="0.3")
    jobs = submit_many(None, "single", [{}] * 300)
    place.finished(*jobs)
    place.until(lambda: total(place, "succeeded") >= len(jobs), 15, "the reports")
    place.finished(*submit_many(None, "single", [{"do": "permanent"}]))
    place.until(lambda: total(place, "failed") == 1, 15, "one more report")
    assert total(place, "succeeded") == len(jobs)


def said(place: Place) -> list[str]:
    return [line for line in place.logs().splitlines() if "queue=single.act" in line and "success_rate" in line]


def total(place: Place, what: str) -> int:
    """Summed over all reports."""
    return sum(int(found) for line in said(place) for found in re.findall(rf"\b{what}=(\d+)", line))
