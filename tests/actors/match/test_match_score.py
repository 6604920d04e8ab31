"""Scores and decisions: properties that hold for all names and dates, and the cases they are meant for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.match.candidates import Candidate, Item, Term, read_candidate
from actors.match.dates import When, agree, from_wikidata, read_date
from actors.match.decide import ProjectSettings, decide, is_settled
from actors.match.readings import Reading
from actors.match.records import Record, read_record
from actors.match.score import DATE_POINTS, Scored, rank, score
from actors.match.surroundings import Known, Surroundings

NAMES = st.text(max_size=40) | st.sampled_from(
    ["Пётр Чайковский", "Tschaikowski", "Louis XIV", "O'Brien", "李文豪", "ß"]
)
YEARS = st.builds(When, st.integers(-500, 2100), st.integers(1, 12) | st.none(), st.integers(1, 28) | st.none())


def candidate(qid: str = "Q1", name: str = "Jane Doe", **more: object) -> Candidate:
    return Candidate(qid, (Term(name, "en"),), **more)  # type: ignore[arg-type]  # fields of the test's choice


@pytest.fixture
def around() -> Surroundings:
    """A few classes and places, as Wikidata knows them."""
    known = Known()
    known.add(
        {
            "Q875538": Item(above=frozenset({"Q3918"})),
            "Q3918": Item(above=frozenset({"Q38723"})),
            "Q22808320": Item(above=frozenset({"Q4167410"})),
            "Q777": Item(above=frozenset({"Q17442446"})),
            "Q2": Item(frozenset({"Sangamon County"}), frozenset({"Q3"})),
            "Q3": Item(frozenset({"Illinois", "IL"})),
            "Q30": Item(frozenset({"United States"}), code="US"),
            "Q34266": Item(frozenset({"Russian Empire"})),
        }
        | {qid: Item() for qid in ("Q5", "Q38723", "Q4167410", "Q17442446")}
    )
    return Surroundings(known)


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


def test_a_name_alone_is_no_match_while_there_are_more_of_that_name() -> None:
    """With a year that agrees it is one."""
    one = candidate("Q1", dates={"P569": (When(1850),)})
    settings, unseen = ProjectSettings(), "there are more of that name"
    decision = decide(rank(Record("Jane Doe"), [one]), settings, unseen)
    assert decision.verdict == "ambiguous" and unseen in decision.why
    assert decide(rank(Record("Jane Doe", dates={"P569": When(1850)}), [one]), settings, unseen).qid == "Q1"


def test_the_decision_says_what_speaks_for_it() -> None:
    """Each reason with its points."""
    found = decide(rank(Record("Jane Doe", type="Q5"), [candidate(types=frozenset({"Q5"}))]), ProjectSettings())
    assert found.verdict == "matched"
    assert "name +0.90 (“Jane Doe” and the label “Jane Doe” (en): the same, 100%)" in found.why
    assert "type +0.03 (it is a Q5)" in found.why


def test_namesakes_that_nothing_tells_apart_end_the_search() -> None:
    """Further candidates would not help; a better one might, where the best is not good yet."""
    settings, record = ProjectSettings(), Record("Jane Doe")
    same = rank(record, [candidate("Q1"), candidate("Q2")])
    assert is_settled(same, decide(same, settings), settings)
    less = rank(record, [candidate("Q1", "Jane B. Dove"), candidate("Q2", "Jane C. Dove")])
    assert not is_settled(less, decide(less, settings), settings)


def test_the_type_may_be_a_class_above(around: Surroundings) -> None:
    """A public university is a higher education institution; what is not known costs nothing; another class much."""
    record = Record("Jane Doe", type="Q38723")
    points = [
        score(record, candidate(types=frozenset({qid})), around).reasons[-1].points
        for qid in ("Q38723", "Q875538", "Q404", "Q5")
    ]
    assert points[0] == points[1] > 0 == points[2] > points[3]


def test_pages_that_are_nobody_are_not_candidates(around: Surroundings) -> None:
    """Disambiguation pages by their number, others by the class above theirs."""
    pages = [candidate(f"Q{n}", types=frozenset({qid})) for n, qid in enumerate(("Q4167410", "Q22808320", "Q777"))]
    assert rank(Record("Jane Doe"), pages, around) == []


def test_a_place_lies_in_what_its_district_lies_in(around: Surroundings) -> None:
    """Springfield is in Sangamon County, that in Illinois; a town elsewhere loses more than a name can give."""
    town = candidate(name="Springfield", lies_in=frozenset({"Q2"}), countries=frozenset({"Q30"}))
    here, there = Reading("Springfield", ("Ill.", "USA")), Reading("Springfield", ("Ohio",))
    agrees, conflicts = (
        score(Record("Springfield", readings=(meaning,)), town, around).reasons[1] for meaning in (here, there)
    )
    assert agrees.points > 0 > conflicts.points and "Ohio" in conflicts.why


def test_a_country_agrees_by_its_code_or_its_name(around: Surroundings) -> None:
    """One that has no code, because it is no more, says nothing against a record."""
    states = frozenset({"Q30"})
    points = [
        sum(r.points for r in score(Record("Jane Doe", country=said), candidate(countries=c), around).reasons[1:])
        for said, c in (("US", states), ("United States", states), ("DE", states), ("DE", frozenset({"Q34266"})))
    ]
    assert points[0] == points[1] > 0 > points[2] and points[3] == 0


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
