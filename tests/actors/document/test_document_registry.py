"""The registry's client against the sandbox: one session for all, renewed when it expires, and nothing half kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from actors.document.config import DocumentSettings
from actors.document.registre_extraction import asked_number, registre_extraction
from actors.document.registry import Entry, shared_registry
from pipeline.declare.errors import Permanent, Transient
from pipeline.declare.job import Job
from sandbox import Sandbox
from sandbox.papers import pdf

NOTE = "RF-1937-0118"
NOTE_JOB = Job(body={"document_number": NOTE})


def kept(settings: DocumentSettings) -> list[Path]:
    return sorted(settings.folder.iterdir()) if settings.folder.exists() else []


def test_a_document_is_found_and_kept_under_its_checksum(settings: DocumentSettings) -> None:
    """Byte for byte as the registry has it."""
    result = asyncio.run(registre_extraction(NOTE_JOB)).result
    assert result is not None
    assert [path.name for path in kept(settings)] == [result["pdf_key"]]
    assert kept(settings)[0].read_bytes() == pdf(NOTE)
    assert (result["bytes"], result["title"]) == (len(pdf(NOTE)), "Reçu")


def test_jobs_of_an_event_loop_share_one_session(sandbox: Sandbox, settings: DocumentSettings) -> None:
    """And the same document sixteen times is one file."""

    async def all_at_once() -> None:
        await asyncio.gather(*(registre_extraction(NOTE_JOB) for _ in range(16)))

    asyncio.run(all_at_once())
    assert sandbox.stats()["paths"]["/registry/login"] == 1
    assert len(kept(settings)) == 1


def test_an_expired_session_is_renewed_once_for_all(sandbox: Sandbox, settings: DocumentSettings) -> None:
    """Between two documents, and between finding one and fetching it."""

    async def expire_twice() -> bytes:
        await registre_extraction(NOTE_JOB)
        await asyncio.to_thread(httpx.post, f"{sandbox.url}/registry/_expire")
        registry = await shared_registry(settings)
        entry = await registry.find(NOTE)
        await asyncio.to_thread(httpx.post, f"{sandbox.url}/registry/_expire")
        async with registry.pdf(entry) as chunks:
            return b"".join([chunk async for chunk in chunks])

    assert asyncio.run(expire_twice()) == pdf(NOTE)
    assert sandbox.stats()["paths"]["/registry/login"] == 3


def test_a_session_that_is_never_accepted_does_not_go_in_circles(sandbox: Sandbox, settings: DocumentSettings) -> None:
    """Two logins, then the job waits for its retry."""
    sandbox.add_fault(match="/registry/documents", status=401)
    with pytest.raises(Transient, match="refused a session"):
        asyncio.run(registre_extraction(NOTE_JOB))
    assert sandbox.stats()["paths"]["/registry/login"] == 2


def test_a_wrong_password_fails_for_good_and_is_not_shown(
    sandbox: Sandbox, settings: DocumentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which settings to look at."""
    monkeypatch.setenv("REGISTRY_URL", f"{sandbox.url}/registry")
    monkeypatch.setenv("REGISTRY_USER", "demo")
    monkeypatch.setenv("REGISTRY_PASSWORD", "hunter-two")
    with pytest.raises(Permanent, match="REGISTRY_PASSWORD") as refusal:
        asyncio.run(registre_extraction(NOTE_JOB))
    assert "hunter-two" not in f"{refusal.value!r} {DocumentSettings()!r}"


def test_a_document_that_is_too_large_leaves_nothing(
    settings: DocumentSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading stops at the limit."""
    monkeypatch.setenv("PIPELINE_DOCUMENT_MAX_BYTES", "100000")
    with pytest.raises(Permanent, match="larger than the allowed"):
        asyncio.run(registre_extraction(NOTE_JOB))
    assert kept(settings) == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"cut": True}, httpx.RemoteProtocolError),
        ({"status": 503}, Transient),
        ({"garbage": True}, Transient),
        ({"delay": 9.0}, httpx.ReadTimeout),
    ],
)
def test_a_download_that_goes_wrong_leaves_nothing_and_can_be_repeated(
    sandbox: Sandbox,
    settings: DocumentSettings,
    monkeypatch: pytest.MonkeyPatch,
    fault: dict[str, object],
    error: type[Exception],
) -> None:
    """Cut off, refused, noise, or too late."""
    sandbox.add_fault(match=f"/registry/documents/{NOTE}/pdf", times=1, **fault)
    with monkeypatch.context() as hurried, pytest.raises(error):
        if "delay" in fault:
            hurried.setenv("PIPELINE_DOCUMENT_READ_SECONDS", "1")
        asyncio.run(registre_extraction(NOTE_JOB))
    assert kept(settings) == []
    asyncio.run(registre_extraction(NOTE_JOB))
    assert len(kept(settings)) == 1


def test_an_unknown_document_fails_for_good(settings: DocumentSettings) -> None:
    """The registry answers, but has no such number."""
    with pytest.raises(Permanent, match="no document RF-1"):
        asyncio.run(registre_extraction(Job(body={"document_number": "RF-1"})))


def test_a_pdf_at_another_address_is_refused(sandbox: Sandbox, settings: DocumentSettings) -> None:
    """The session's cookie goes to the registry and nowhere else."""

    async def stolen() -> None:
        registry = await shared_registry(settings)
        with pytest.raises(Permanent, match="another address"):
            registry._entry(NOTE, {"pdf": "http://10.0.0.1/stolen"})
        async with registry.pdf(Entry(NOTE, "", "http://10.0.0.1/stolen")):
            pass

    with pytest.raises(Permanent):
        asyncio.run(stolen())


@pytest.mark.parametrize("body", [{}, {"document_number": 7}, {"document_number": "  "}, {"document_number": "../x\n"}])
def test_a_job_without_a_proper_number_fails_for_good(body: dict[str, object]) -> None:
    """The message says how to submit one."""
    with pytest.raises(Permanent, match="document_number"):
        asked_number(body)
