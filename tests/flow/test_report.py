"""What the leader says in the log every health check."""

from __future__ import annotations

from pipeline import submit_many
from tests.place import Place


def test_time_and_rates_of_each_phase_are_in_the_log(place: Place) -> None:
    """How many succeeded, failed and were retried, the share that succeeded, and the mean time of a success."""
    place.worker(PIPELINE_HEALTH_SECONDS="1")
    place.finished(*submit_many(None, "single", [{}, {}, {"do": "permanent"}]))
    said = place.until(
        lambda: [line for line in place.logs().splitlines() if "queue=single.act" in line and "success_rate" in line],
        15, "the report",
    )  # fmt: skip
    assert any("mean_seconds=0" in line for line in said)
    assert any("failed=1" in line for line in said)
