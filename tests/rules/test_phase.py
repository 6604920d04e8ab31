"""What a phase may be called and what it may use."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.declare.phase import PhaseSpec, Throttle, idempotency_key, read_rate, read_size
from pipeline.journey.message import build, parse

names = st.from_regex(r"\A[a-z][a-z0-9]*(-[a-z0-9]+){0,3}\Z").filter(lambda name: len(name) <= 60)


@given(names, names)
def test_every_phase_has_a_queue_that_fits_an_envelope(workflow: str, name: str) -> None:
    """A name that can be declared can be sent."""
    spec = PhaseSpec(workflow, name)
    envelope = build(
        job_id=uuid4(),
        queue=spec.queue,
        send=1,
        attempt=1,
        max_attempts=spec.max_attempts,
        created_at="2026-01-02T03:04:05+00:00",
        body={},
        trace_id="a" * 32,
        span_id="b" * 16,
    )
    assert parse(envelope).header.type == f"{workflow}.{name}"


@given(names)
def test_an_actor_is_named_like_the_function_it_was_made_from(name: str) -> None:
    """With its workflow in front, because names are global to a broker."""
    assert PhaseSpec("website", name).actor == f"website.{name.replace('-', '_')}"


@pytest.mark.parametrize(
    "name", ["", "Website", "web_site", "web site", "-web", "web-", "web--site", "1web", "wéb", "a.b", "a\n", "a" * 61]
)
def test_a_name_is_lower_case_words_joined_by_dashes(name: str) -> None:
    """Because it becomes a queue, a routing key, a processor's name and a folder."""
    for workflow, phase in ((name, "good"), ("good", name)):
        with pytest.raises(ValueError, match="lower-case words"):
            PhaseSpec(workflow, phase)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"pool": 0}, "pool=None"),
        ({"pool": -1}, "at least one processor"),
        ({"queue_limit": 0}, "at least 1"),
        ({"max_attempts": 0}, "at least 1"),
        ({"max_crashes": 0}, "at least 1"),
        ({"max_jobs": 0}, "at least 1"),
    ],
)
def test_a_limit_below_one_is_refused_with_what_to_do(limits: dict[str, Any], said: str) -> None:
    """At declaration."""
    with pytest.raises(ValueError, match=f"phase act: .*{said}"):
        PhaseSpec("single", "act", **limits)


@pytest.mark.parametrize(
    "limits", [{"time_limit": 0.0}, {"time_limit": -1.0}, {"stale_after": -1.0}, {"memory_limit": 0}]
)
def test_a_time_or_size_of_nothing_is_refused(limits: dict[str, Any]) -> None:
    """A phase with no time would fail every job it gets."""
    with pytest.raises(ValueError, match=r".+"):
        PhaseSpec("single", "act", **limits)


@pytest.mark.parametrize("pace", [(0, 1.0), (-1, 1.0), (1, 0.0), (1, -1.0)])
def test_a_throttle_that_lets_nothing_through_is_refused(pace: tuple[int, float]) -> None:
    """PostgreSQL's CHECK would refuse it only at the migration."""
    with pytest.raises(ValueError, match=r".+"):
        Throttle(*pace)


def test_the_defaults_are_the_specs_numbers() -> None:
    """Pool of ten, a thousand messages, three executions, three crashes."""
    spec = PhaseSpec("single", "act")
    assert (spec.pool, spec.queue_limit, spec.max_attempts, spec.max_crashes) == (None, 1000, 3, 3)


@given(st.uuids(), names, names)
def test_an_idempotency_key_is_stable_and_differs_between_phases(job: object, one: str, other: str) -> None:
    """G4: the same for every attempt."""
    assert idempotency_key(job, one) == idempotency_key(str(job), one)
    assert (idempotency_key(job, one) == idempotency_key(job, other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2 GiB", 2 << 30),
        ("512MiB", 512 << 20),
        ("1.5 kb", 1500),
        ("3 TB", 3 * 10**12),
        ("7 B", 7),
        (12, 12),
        (None, None),
    ],
)
def test_a_size_is_a_number_or_a_text(text: int | str | None, size: int | None) -> None:
    """With the units of 1,000 and of 1,024."""
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["much", "2 GiBs", "-1 KB", "", "2"])
def test_a_size_that_cannot_be_read_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(ValueError, match="is not a size: write a number of bytes, or a text such as '512 MiB'"):
        read_size(text)


@pytest.mark.parametrize(
    ("rate", "count", "seconds"), [("20/s", 1, 0.05), ("200/s", 10, 0.05), ("100 / min", 1, 0.6), ("5/h", 1, 720.0)]
)
def test_a_rate_is_sent_evenly(rate: str, count: int, seconds: float) -> None:
    throttle = read_rate(rate)
    assert throttle is not None
    assert throttle.count == count and throttle.seconds == pytest.approx(seconds)


@pytest.mark.parametrize("rate", ["", "fast", "0/s", "20", "20/day", "-1/s"])
def test_what_is_no_rate_is_refused(rate: str) -> None:
    with pytest.raises(ValueError, match="is not a rate: write a number and a time"):
        read_rate(rate)
