"""Phase 1 against the sandbox: what is kept, and how each kind of trouble ends."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from actors.website.config import WebsiteSettings
from actors.website.visit import fetch_page
from actors.website.website_analysis import asked_url, website_analysis
from pipeline.declare.errors import GiveUp, Permanent, Retry, SnoozeFor, classify
from pipeline.declare.job import Job
from sandbox import Sandbox
from sandbox.sites import TONGUES, site

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def verdict_on(url: str, settings: WebsiteSettings) -> object:
    """What the engine makes of the error that fetching ``url`` raises."""
    with pytest.raises(Exception) as caught:  # which one is the subject of the test
        asyncio.run(fetch_page(url, settings))
    return classify(caught.value, NOW)


@pytest.mark.parametrize("number", range(2 * len(TONGUES)))
def test_sites_of_every_language_are_understood(settings: WebsiteSettings, number: int) -> None:
    """Title, description, headings, links, text and structured data, whatever the encoding."""
    shown = site(number)
    page = asyncio.run(fetch_page(f"{settings.sandbox_url}/sites/{number}/", settings))
    assert page.title == shown.words(shown.tongue.title)
    assert page.description == shown.words(shown.tongue.description)
    assert page.language == shown.tongue.language
    assert shown.words(shown.tongue.about) in page.text
    assert page.structured_data[0]["name"] == shown.firm
    assert (len(page.headings), len(page.links_in), len(page.links_out)) == (3, 3, 1)


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/sites/1/?fault_status=500", Retry()),
        ("/sites/1/?fault_status=503&fault_retry_after=4", SnoozeFor(4.0, "retry_after")),
        ("/sites/1/?fault_status=429&fault_retry_after=9", SnoozeFor(9.0, "retry_after")),
        ("/sites/1/?fault_status=408", Retry()),
        ("/sites/1/?fault_cut=1", Retry()),
        ("/sites/1/?fault_garbage=1", Retry()),
        ("/slow?seconds=5", Retry()),
        ("/drip?pause=0.1", Retry()),
        ("/status/404", GiveUp()),
        ("/status/403", GiveUp()),
        ("/loop/a", GiveUp()),
        ("/redirect/20", GiveUp()),
        ("/huge?mb=6", GiveUp()),
        ("/bomb/gzip", GiveUp()),
        ("/picture.png", GiveUp()),
        ("/empty", GiveUp()),
        ("/private/x", GiveUp()),
        ("/redirect-to?url=http://169.254.169.254/", GiveUp()),
    ],
)
def test_each_kind_of_trouble_ends_as_it_should(settings: WebsiteSettings, path: str, verdict: object) -> None:
    """Trouble that may pass is tried again, a request to wait is free, the rest fails at once."""
    # Only who dawdles is not waited for: a busy machine takes its time for the others.
    if path.startswith(("/slow", "/drip")):
        settings = settings.model_copy(update={"read_seconds": 1.0, "total_seconds": 5.0})
    assert verdict_on(settings.sandbox_url + path, settings) == verdict


@pytest.mark.parametrize("path", ["/broken", "/deep", "/redirect/3"])
def test_odd_pages_are_still_pages(settings: WebsiteSettings, path: str) -> None:
    """Broken, endless nesting, moved: something to analyse remains."""
    assert not asyncio.run(fetch_page(settings.sandbox_url + path, settings)).is_empty


def test_robots_can_be_left_out_by_setting(settings: WebsiteSettings, sandbox: Sandbox) -> None:
    """Without them not even the file is asked for."""
    careless = settings.model_copy(update={"respect_robots": False})
    assert asyncio.run(fetch_page(f"{settings.sandbox_url}/private/x", careless)).title == "Members only"
    assert "/robots.txt" not in sandbox.stats()["paths"]


def test_the_phase_returns_references_and_writes_the_page(settings: WebsiteSettings) -> None:
    """The result is small; the page itself goes into the table."""
    job = Job(body={"url": f"{settings.sandbox_url}/sites/3/"}, id=UUID(int=7))
    done = asyncio.run(website_analysis(job))
    assert done.write is not None
    assert done.result is not None
    assert done.result["language"] == "ja"
    assert len(json.dumps(done.result)) < 1000


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("https://example.com/a", "https://example.com/a"),
        (" example.com/a ", "https://example.com/a"),
        ("example.com:8080/a", "https://example.com:8080/a"),
        ("//example.com", "https://example.com"),
        ("javascript:alert(1)", "javascript:alert(1)"),
    ],
)
def test_an_address_may_leave_out_its_scheme(given: str, meant: str) -> None:
    """People write example.com; what has a scheme keeps it, and is judged by it."""
    assert asked_url({"url": given}) == meant


@pytest.mark.parametrize("body", [{}, {"url": ""}, {"url": 5}, {"url": None}])
def test_a_job_without_an_address_fails_with_advice(body: dict[str, object]) -> None:
    """The message says how to submit it."""
    with pytest.raises(Permanent, match="submit it with"):
        asked_url(body)
