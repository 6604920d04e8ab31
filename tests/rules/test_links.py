"""Links that tell a job of an event: nobody makes or changes one without the secret."""

from __future__ import annotations

import base64
from datetime import timedelta
from uuid import UUID

import pytest
from pydantic import SecretStr

from pipeline import Job, settings
from pipeline.declare.errors import BadInput, Misuse
from pipeline.declare.waits.links import BadLink, ExpiredLink, Link, new_link, read, sign
from pipeline.event_links import event_link, read_token

JOB = UUID("01a1e35a-acab-720d-861a-d34a819014b2")
OLD, NEW = b"o" * 40, b"n" * 40
WEEK = timedelta(days=7)


def link(body: object = None, event: str = "approved", fence: int | None = 3) -> Link:
    return new_link(JOB, event, WEEK, body, fence=fence, now=1000.0)


@pytest.mark.parametrize("event", ["approved", "reçu n° 1", "e" * 200])
@pytest.mark.parametrize("body", [None, {"by": "Ada"}, [1, None], "yes"])
def test_a_link_says_what_was_signed(event: str, body: object) -> None:
    signed = link(body, event)
    token = sign(NEW, signed)
    assert read([NEW], token, now=1001.0) == signed
    assert token.replace(".", "").replace("-", "").replace("_", "").isalnum() and len(token) < 2000


def test_every_accepted_secret_reads_it_and_no_other() -> None:
    """A secret is replaced by putting the new one first."""
    token = sign(OLD, link())
    assert read([NEW, OLD], token, now=1001.0).job == JOB
    with pytest.raises(BadLink):
        read([NEW], token, now=1001.0)


def test_a_token_of_which_one_character_changed_is_not_read() -> None:
    token = sign(NEW, link({"by": "Ada"}))
    for place in range(len(token)):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        # The last character of a part can have bits that say nothing.
        if _bytes(changed) != _bytes(token):
            with pytest.raises(BadLink):
                read([NEW], changed, now=1001.0)


def test_what_was_signed_for_another_job_or_event_is_not_read() -> None:
    """A signature is of the whole link."""
    said, signature = sign(NEW, link(event="refused")).split(".")
    other, _ = sign(NEW, link()).split(".")
    assert said != other
    with pytest.raises(BadLink):
        read([NEW], f"{other}.{signature}", now=1001.0)


@pytest.mark.parametrize("token", ["", ".", "a.b", "a.b.c", "é.é", "A" * 5000, "AAAA." + "A" * 43, "\x00.\x00"])
def test_what_is_no_token_is_not_read(token: str) -> None:
    with pytest.raises(BadLink):
        read([NEW], token, now=1001.0)


def test_a_link_ends_with_its_time() -> None:
    token = sign(NEW, link())
    end = 1000.0 + WEEK.total_seconds()
    assert read([NEW], token, now=end - 1).event == "approved"
    with pytest.raises(ExpiredLink):
        read([NEW], token, now=end)


@pytest.mark.parametrize(
    ("event", "expires", "body"),
    [
        ("", WEEK, None),
        ("e" * 201, WEEK, None),
        ("a", timedelta(0), None),
        ("a", WEEK, "x" * 1024),
        ("a", WEEK, {1, 2}),
    ],
)
def test_a_link_that_cannot_be_meant_is_refused(event: str, expires: timedelta, body: object) -> None:
    with pytest.raises((Misuse, BadInput)):
        new_link(JOB, event, expires, body, fence=None, now=1000.0)


def configured(**extra: object) -> settings.Settings:
    return settings.load(DATABASE_URL=SecretStr("postgresql://h/d"), RABBITMQ_URL=SecretStr("amqp://h"), **extra)


@pytest.mark.parametrize("secret", [None, " ", "short"])
def test_without_a_good_secret_the_error_names_the_setting(secret: str | None) -> None:
    config = configured(event_secret=None if secret is None else SecretStr(secret))
    with pytest.raises(BadInput, match="PIPELINE_EVENT_SECRET"):
        event_link(JOB, "approved", expires=WEEK, config=config)


def test_a_link_leads_to_the_api_and_the_secret_is_in_no_repr() -> None:
    config = configured(event_secret=SecretStr("s" * 32), api_url="https://jobs.example.org/")
    made = event_link(JOB, "approved", expires=WEEK, body={"by": "Ada"}, config=config)
    assert made.startswith("https://jobs.example.org/v1/events/")
    found = read_token(config, made.rpartition("/")[2])
    assert (found.job, found.event, found.body) == (JOB, "approved", '{"by":"Ada"}')
    assert "s" * 32 not in repr(config) + str(config)


def test_a_phase_that_makes_a_link_is_tested_without_a_secret() -> None:
    assert Job({}).event_link("approved").endswith("/v1/events/approved")


def _bytes(token: str) -> list[bytes]:
    return [base64.urlsafe_b64decode(f"{part}===") for part in token.split(".")] if token.count(".") == 1 else []
