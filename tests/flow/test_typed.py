"""Typed bodies and results, in threads, on the event loop and in child processes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from pydantic import HttpUrl

from pipeline import BadInput, submit, submit_many
from tests.place import ISOLATED, Place
from tests.typed_workflows import Audit, Report, Tone, audit

URL = HttpUrl("http://example.org/")
SQL = "SELECT pipeline.submit('typed-audit', %s::jsonb) AS id"


def test_models_travel_through_every_kind_of_phase(place: Place) -> None:
    """Decimal, datetime, UUID, enum and URL: as they were."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    customer = uuid4()
    job = audit.submit(Audit(customer=customer, url=URL, tone=Tone.LOUD))
    assert job.result(timeout=30) == Report(
        url=URL,
        customer=customer,
        total=Decimal("0.30"),
        until=datetime(2026, 11, 19, tzinfo=UTC),
        links=["http://example.org/", "loud"],
    )
    assert place.job(job.id)["result"]["crawl"] == ["http://example.org/", "loud"]


def test_a_body_that_does_not_fit_is_refused_with_its_field(place: Place) -> None:
    """By the workflow, by its name, and in the middle of many; nothing is stored."""
    refusal = "does not fit workflow typed-audit: customer: Field required; url: Input should be a valid URL"
    with pytest.raises(BadInput, match=f"^the body {refusal}"):
        audit.submit({"url": "nowhere"})  # type: ignore[call-overload]  # a type checker refuses it as well
    with pytest.raises(BadInput, match=f"^the body {refusal}"):
        submit(None, "typed-audit", {"url": "nowhere"})
    with pytest.raises(BadInput, match=f"body 2 {refusal}"):
        submit_many(None, "typed-audit", [Audit(customer=uuid4(), url=URL), {"url": "nowhere"}])
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0


def test_a_body_from_sql_that_does_not_fit_fails_its_job_once(place: Place) -> None:
    """At once and in the same words: trying again would not help."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    job: UUID = place.rows(SQL, '{"url": "nowhere"}')[0]["id"]
    [row] = place.finished(job)
    refusal = "does not fit workflow typed-audit: customer: Field required; url: Input should be a valid URL"
    assert row["status"] == "failed" and refusal in row["error_message"]
    assert [one["outcome"] for one in place.attempts(job)] == ["failed"]
    assert "nowhere" not in row["error_message"]


def test_a_result_that_is_not_what_the_annotation_says_fails_its_job_once(place: Place) -> None:
    """The phase that returned it fails, and not the one that would have read it."""
    place.worker(PIPELINE_WORKFLOWS=ISOLATED)
    job = submit(None, "typed-audit", Audit(customer=uuid4(), url=URL, wrong="much"))
    [row] = place.finished(job)
    assert (row["status"], row["phase"]) == ("failed", "price")
    assert (
        "phase price returned a result that is not what its annotation says: 0: Input should be" in row["error_message"]
    )
    assert [one["outcome"] for one in place.attempts(job)] == ["succeeded", "failed"]
