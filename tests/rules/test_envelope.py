"""The message on the wire: what we build we can read, and nothing else gets in."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.journey.message import InvalidEnvelope, build, parse

words = st.from_regex(r"\A[a-z0-9-]{1,60}\Z")
counts = st.integers(min_value=1, max_value=2**31 - 1)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
plain = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
built = st.builds(
    build,
    job_id=st.uuids(),
    queue=st.builds("{}.{}".format, words, words),
    send=st.integers(min_value=1, max_value=2**63 - 1),
    attempt=counts,
    max_attempts=counts,
    created_at=st.datetimes().map(lambda moment: moment.isoformat() + "+00:00"),
    body=st.dictionaries(st.text(), plain, max_size=4),
    trace_id=st.text("0123456789abcdef", min_size=32, max_size=32),
    span_id=st.text("0123456789abcdef", min_size=16, max_size=16),
)

GOOD: dict[str, Any] = build(
    job_id="019b0000-0000-7000-8000-000000000001",
    queue="website.website-analysis",
    send=3,
    attempt=1,
    max_attempts=3,
    created_at="2026-01-02T03:04:05.678901+00:00",
    body={"url": "https://example.org"},
    trace_id="a" * 32,
    span_id="b" * 16,
)
FIELDS = [(part, name) for part in ("header", "tracing") for name in GOOD[part]]


def test_the_example_is_good() -> None:
    """Each refusal below differs from it in one thing."""
    assert parse(GOOD).header.send == 3


@given(built)
def test_what_is_built_is_parsed_back(envelope: dict[str, Any]) -> None:
    """Also after the trip through JSON."""
    parsed = parse(json.loads(json.dumps(envelope)))
    header = {**parsed.header.model_dump(), "job_id": str(parsed.header.job_id)}
    assert {"header": header, "body": parsed.body, "tracing": parsed.tracing.model_dump()} == envelope


@pytest.mark.parametrize(("part", "name"), FIELDS)
def test_a_missing_field_is_named(part: str, name: str) -> None:
    """All of them are needed."""
    envelope = deepcopy(GOOD)
    del envelope[part][name]
    _refused(envelope, f"{part}.{name}")


@pytest.mark.parametrize("part", ["header", "body", "tracing"])
def test_a_missing_part_is_named(part: str) -> None:
    """All three are needed."""
    _refused({name: value for name, value in GOOD.items() if name != part}, part)


@given(st.sampled_from(["header", "tracing"]), st.text(min_size=1, max_size=20))
def test_an_extra_field_is_named(part: str, name: str) -> None:
    """Strict in both directions: a field we do not know may mean something to its sender."""
    if name not in GOOD[part]:
        _refused({**GOOD, part: {**GOOD[part], name: 1}}, f"{part}.{name}")


def test_an_extra_part_is_named() -> None:
    """The envelope has three parts."""
    _refused({**GOOD, "footer": {}}, "footer")


@pytest.mark.parametrize("version", ["1", "1.1", "2.0", 1.0, None, "", "1.0 "])
def test_another_version_is_refused(version: object) -> None:
    """An old worker must not guess at a new message."""
    _refused(_with("version", version), "header.version")


@pytest.mark.parametrize("field", ["attempt", "max_attempts", "send"])
@pytest.mark.parametrize("value", [0, -1, "1", 1.0, True, None, [1]])
def test_a_count_is_a_whole_number_from_one(field: str, value: object) -> None:
    """No strings, no booleans, no floats."""
    _refused(_with(field, value), f"header.{field}")


def test_a_send_number_fits_into_a_bigint() -> None:
    """PostgreSQL would refuse it later, at a worse place."""
    _refused(_with("send", 2**63), "header.send")


@pytest.mark.parametrize("job_id", ["", "x", "019b0000", 7, None, {}, "019b0000-0000-7000-8000-00000000000g"])
def test_a_job_id_is_a_uuid(job_id: object) -> None:
    """And nothing else."""
    _refused(_with("job_id", job_id), "header.job_id")


@pytest.mark.parametrize(
    "kind", ["", "website", "Website.page", "a.b.c", "a b.c", "website.", "a.b\n", "a" * 61 + ".b", 5]
)
def test_a_type_is_a_workflow_and_a_phase(kind: object) -> None:
    """Joined by one dot."""
    _refused(_with("type", kind), "header.type")


@pytest.mark.parametrize("moment", ["", "soon", "infinity", "2026-13-01T00:00:00+00:00", 5, None, "x" * 41])
def test_a_creation_time_is_a_moment(moment: object) -> None:
    """It goes into the claim as a timestamp: one that PostgreSQL cannot read would fail the whole claim."""
    _refused(_with("created_at", moment), "header.created_at")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trace_id", "A" * 32),
        ("trace_id", "a" * 31),
        ("trace_id", "a" * 33),
        ("trace_id", None),
        ("trace_id", "a" * 32 + "\n"),
        ("span_id", "g" * 16),
        ("span_id", "a" * 15),
        ("span_id", 1),
    ],
)
def test_trace_ids_are_w3c_ids(name: str, value: object) -> None:
    """Lower-case hexadecimal of a fixed length."""
    _refused({**GOOD, "tracing": {**GOOD["tracing"], name: value}}, f"tracing.{name}")


@pytest.mark.parametrize("body", [None, [], "x", 1, True])
def test_a_body_is_an_object(body: object) -> None:
    """References by name."""
    _refused({**GOOD, "body": body}, "body")


@given(plain | st.fixed_dictionaries({"header": plain, "body": plain, "tracing": plain}))
def test_arbitrary_data_is_refused_and_never_raises_anything_else(raw: object) -> None:
    """A stranger's message must not end a worker."""
    with pytest.raises(InvalidEnvelope, match=r"^invalid envelope: "):
        parse(raw)


@given(st.sampled_from(FIELDS), plain)
def test_arbitrary_data_in_one_field_is_read_or_refused_by_its_name(field: tuple[str, str], value: object) -> None:
    """The message says where to look."""
    part, name = field
    try:
        parse({**GOOD, part: {**GOOD[part], name: value}})
    except InvalidEnvelope as error:
        assert f"{part}.{name}" in str(error)


def _with(name: str, value: object) -> dict[str, Any]:
    return {**GOOD, "header": {**GOOD["header"], name: value}}


def _refused(envelope: object, field: str) -> None:
    with pytest.raises(InvalidEnvelope) as caught:
        parse(envelope)
    assert str(caught.value).startswith(f"invalid envelope: {field}: ")
