"""Signatures of webhooks are those of Standard Webhooks, and nothing else passes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import BadInput
from pipeline.webhooks import InvalidWebhook, verify
from pipeline.webhooks.signature import decode_secret, sign

# What the standard's own library makes of this.
SECRET, AT, BODY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330, b'{"test": 2432232314}'
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(AT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def check(**change: Any) -> Any:
    given = {"body": BODY, "headers": HEADERS, "secret": SECRET, "now": AT + 1.0, **change}
    return verify(given.pop("body"), given.pop("headers"), given.pop("secret"), **given)


def test_the_standards_own_example_is_signed_and_verified_alike() -> None:
    assert sign([decode_secret(SECRET)], HEADERS["webhook-id"], AT, BODY) == HEADERS
    received = check()
    assert (received.id, received.body, received.sent_at.timestamp()) == (
        HEADERS["webhook-id"],
        {"test": 2432232314},
        AT,
    )
    assert check(headers={name.title(): value for name, value in HEADERS.items()}) == received


def test_one_of_several_secrets_and_signatures_is_enough() -> None:
    """While a secret is replaced; signatures of a kind that is not known are passed over."""
    other = "whsec_" + "A" * 40
    assert check(secret=[other, SECRET]).body
    more = f"v1a,AAAA v1,AAAA {HEADERS['webhook-signature']}"
    assert check(headers={**HEADERS, "webhook-signature": more}).body


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"body": BODY + b"\n"}, "not one of this secret"),
        ({"secret": "whsec_" + "A" * 40}, "not one of this secret"),
        ({"headers": {**HEADERS, "webhook-id": "msg_another"}}, "not one of this secret"),
        ({"headers": {**HEADERS, "webhook-timestamp": str(AT + 1)}}, "not one of this secret"),
        ({"headers": {**HEADERS, "webhook-signature": "v1,"}}, "not one of this secret"),
        ({"headers": {**HEADERS, "webhook-signature": "é \ud800"}}, "not one of this secret"),
        ({"headers": {"webhook-id": "msg"}}, "no header webhook-timestamp, webhook-signature"),
        ({"headers": {**HEADERS, "webhook-timestamp": "٣"}}, "not a moment"),
        ({"headers": {**HEADERS, "webhook-timestamp": "1e9"}}, "not a moment"),
        ({"now": AT + 301.0}, "sent 301 s ago, and 300 s are allowed"),
        ({"now": AT - 301.0}, "sent 301 s ahead"),
        ({"now": AT + 11.0, "tolerance": timedelta(seconds=10)}, "10 s are allowed"),
    ],
)
def test_anything_else_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidWebhook, match=said):
        check(**change)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAAA", "A" * 40, "whsec_" + "A" * 92, "whsec_" + "é" * 40])
def test_a_secret_that_is_none_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(BadInput, match="24 to 64 random bytes") as refused:
        check(secret=secret)
    assert len(secret) < 8 or secret not in str(refused.value)


@given(st.binary(max_size=200), st.dictionaries(st.sampled_from(list(HEADERS)), st.text(max_size=60)))
def test_nothing_that_a_stranger_sends_is_more_than_refused(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidWebhook):
        check(body=body, headers=headers)
    signed = sign([decode_secret(SECRET)], "msg", AT, body)
    try:
        assert check(body=body, headers=signed).id == "msg"
    except InvalidWebhook as refused:
        assert "not valid JSON" in str(refused)
