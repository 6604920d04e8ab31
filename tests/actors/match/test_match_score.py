"""Scores and decisions: properties that hold for all names and dates, and the cases they are meant for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.match.dates import When, agree, from_wikidata, read_date
from actors.match.decide import ProjectSettings, decide
from actors.match.normalise import fold, plain_name, sound
from actors.match.records import Candidate, Record, Term, read_candidate, read_record
from actors.match.score import DATE_POINTS, Scored, rank, score, similarity

NAMES = st.text(max_size=40) | st.sampled_from(
    ["Пётр Чайковский", "Tschaikowski", "Louis XIV", "O'Brien", "李文豪", "ß"]
)
YEARS = st.builds(When, st.integers(-500, 2100), st.integers(1, 12) | st.none(), st.integers(1, 28) | st.none())


def candidate(qid: str = "Q1", name: str = "Jane Doe", **more: object) -> Candidate:
    return Candidate(qid, (Term(name, "en"),), **more)  # type: ignore[arg-type]  # fields of the test's choice


@given(NAMES)
def test_folding_twice_is_folding_once(name: str) -> None:
    """A folded name is in its one normal form."""
    assert fold(fold(name)) == fold(name)
    assert sound(fold(name)) == sound(name)


@given(NAMES, NAMES)
def test_likeness_is_a_share_and_the_same_both_ways(one: str, other: str) -> None:
    """Between 0 and 1; a name is wholly like itself, unless there is nothing in it."""
    assert 0.0 <= similarity(one, other) <= 1.0
    assert similarity(one, other) == pytest.approx(similarity(other, one))
    assert similarity(one, one) == (1.0 if fold(one) else 0.0)


@pytest.mark.parametrize(
    ("one", "other", "least"),
    [
        ("Tschaikowski", "Чайковский", 0.95),
        ("Müller", "Mueller", 0.95),
        ("Takeda Haruki", "Haruki Takeda", 1.0),
        ("Νίκος", "Nikos", 1.0),
        ("J. Doe", "Jane Doe", 0.85),
        ("SOREN OESTERLUND", "Søren Østerlund", 0.9),
    ],
)
def test_spellings_of_one_name_meet(one: str, other: str, least: float) -> None:
    """Alphabets, accents, order, initials."""
    assert similarity(one, other) >= least


@pytest.mark.parametrize(
    ("one", "other"), [("Apollo 11", "Apollo 12"), ("Louis XIV", "Louis XV"), ("Meridian 7", "Meridian")]
)
def test_another_number_is_another_thing(one: str, other: str) -> None:
    """However alike the letters are."""
    assert similarity(one, other) <= 0.6


@given(YEARS, YEARS)
def test_dates_agree_the_same_both_ways(one: When, other: When) -> None:
    """And every date agrees with itself."""
    assert agree(one, other) == agree(other, one)
    assert DATE_POINTS[agree(one, one)] > 0


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("1828", When(1828)),
        (1828, When(1828)),
        ("1828-09", When(1828, 9)),
        ("1828-09-09", When(1828, 9, 9)),
        ("9.9.1828", When(1828, 9, 9)),
        ("c. 1828", When(1828)),
        ("09/10/1828", When(1828)),
        ("44 BC", When(-44)),
        ("144 BC", When(-144)),
        ("1828-13-40", When(1828)),
        ("1828 or 1830", None),
        ("unknown", None),
        (None, None),
        (True, None),
    ],
)
def test_dates_are_read_as_people_write_them(said: object, meant: When | None) -> None:
    """As precise as they are certain; what is no date is none."""
    assert read_date(said) == meant


def test_wikidatas_precision_is_kept() -> None:
    """A year is not the first of January, and a decade is not a year."""
    day = {"time": "+1828-09-09T00:00:00Z", "precision": 11}
    assert from_wikidata(day) == When(1828, 9, 9)
    assert from_wikidata({**day, "precision": 9}) == When(1828)
    assert agree(from_wikidata({**day, "precision": 8}) or When(0), When(1835)) == "unsure"
    assert agree(from_wikidata({**day, "precision": 8}) or When(0), When(1850)) == "conflict"
    assert from_wikidata({"time": "nonsense", "precision": 9}) is from_wikidata(None) is None


@given(NAMES, NAMES, st.dictionaries(st.sampled_from(["P569", "P570"]), YEARS), YEARS)
def test_the_reasons_add_up_to_the_score(one: str, other: str, dates: dict[str, When], theirs: When) -> None:
    """Cut off at 0 and 1."""
    found = score(Record(one, dates=dates, type="Q5"), candidate(name=other, dates={"P569": (theirs,)}))
    assert found.score == pytest.approx(min(max(sum(r.points for r in found.reasons), 0), 1), abs=1e-3)
    assert all(reason.why for reason in found.reasons)


@given(NAMES, YEARS, YEARS)
def test_an_agreeing_date_never_costs_and_a_conflict_always_does(name: str, ours: When, theirs: When) -> None:
    """Compared with not knowing the date."""
    known, unknown = Record(name, dates={"P569": ours}), Record(name)
    them = candidate(name=name, dates={"P569": (theirs,)})
    if agree(ours, theirs) == "conflict":
        assert score(known, them).score <= score(unknown, them).score
    else:
        assert score(known, them).score >= score(unknown, them).score


@given(st.lists(st.tuples(st.integers(1, 99), st.floats(0, 1)), max_size=6))
def test_a_match_is_always_good_enough_and_clearly_ahead(found: list[tuple[int, float]]) -> None:
    """By the project's own thresholds."""
    settings = ProjectSettings()
    ranked = sorted((Scored(candidate(f"Q{n}"), s, ()) for n, s in found), key=lambda s: -s.score)
    decision = decide(ranked, settings)
    if decision.verdict == "matched":
        assert decision.qid == ranked[0].candidate.qid and ranked[0].score >= settings.match_at
        assert len(ranked) == 1 or ranked[0].score - ranked[1].score >= settings.margin - 1e-4
    else:
        assert decision.qid is None
    assert (decision.verdict == "none") == (not ranked or ranked[0].score < settings.consider_at)


def test_a_date_tells_namesakes_apart() -> None:
    """Without it they are ambiguous."""
    two = [candidate("Q1", dates={"P569": (When(1850),)}), candidate("Q2", dates={"P569": (When(1901),)})]
    settings = ProjectSettings()
    assert decide(rank(Record("Jane Doe"), two), settings).verdict == "ambiguous"
    assert decide(rank(Record("Jane Doe", dates={"P569": When(1901)}), two), settings).qid == "Q2"
    assert decide(rank(Record("Jane Doe", dates={"P569": When(1700)}), two), settings).verdict != "matched"


def test_a_record_is_read_from_what_columns_say() -> None:
    """Known names of columns, brackets behind a name, words for types."""
    record = read_record("Doe, Jane (painter)", {"Birth_Date": "1850-01", "type": "human", "aliases": "J. Doe; Jenny"})
    assert (record.name, record.aliases, record.description) == ("Jane Doe", ("J. Doe", "Jenny"), "painter")
    assert (record.dates, record.type) == ({"P569": When(1850, 1)}, "Q5")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["labels", "aliases", "claims", "en", "value", "P31", "P569", "mainsnak", "datavalue"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["labels", "aliases", "descriptions", "claims"]), JSON), NAMES)
def test_whatever_wikidata_sends_can_be_scored(entity: dict[str, object], name: str) -> None:
    """Malformed parts are left out, never an error."""
    read = read_candidate("Q1", entity, ("en", "mul"))
    assert read is not None
    assert 0 <= score(read_record(name, {"born": "1850"}), read).score <= 1


@given(NAMES)
def test_a_plain_name_has_something_left_of_it(name: str) -> None:
    """Brackets and commas are taken away only if a name remains."""
    assert bool(plain_name(name)) == bool(name.split())
