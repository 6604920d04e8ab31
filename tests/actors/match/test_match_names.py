"""Names: spellings of one name meet, other names do not, and a record's name is read in all that it may mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.match.candidates import Item
from actors.match.legal_forms import without_legal_form
from actors.match.names import INITIALS, LONGER, ONE_INITIAL, OTHER_ENDING, OTHER_NUMBER, SAME_BUT_FORM, likeness
from actors.match.normalise import fold, numbers, sound
from actors.match.places import is_called
from actors.match.readings import apart, plain, readings

NAMES = st.text(max_size=40) | st.sampled_from(
    ["Пётр Чайковский", "Tschaikowski", "Louis XIV", "O'Brien", "李文豪", "ß", "Doe, Jane", "GmbH & Co. KG", "(x)", ","]
)
KINDS = st.sampled_from(["", "person", "company", "place", "school", "river", "other"])


@given(NAMES)
def test_folding_twice_is_folding_once(name: str) -> None:
    """A folded name is in its one normal form."""
    assert fold(fold(name)) == fold(name)
    assert sound(fold(name)) == sound(name)


@given(NAMES, NAMES, KINDS)
def test_likeness_is_a_share_and_says_why(one: str, other: str, kind: str) -> None:
    """Between 0 and 1; a name is wholly like itself, unless there is nothing in it."""
    found = likeness(one, other, kind)
    assert found.worth <= 1.0 and found.how
    assert likeness(one, one, kind).worth == (1.0 if fold(one) else 0.0)


@pytest.mark.parametrize(
    ("one", "other", "kind", "least"),
    [
        ("Tschaikowski", "Чайковский", "", 0.95),
        ("Müller", "Mueller", "", 0.95),
        ("Takeda Haruki", "Haruki Takeda", "person", 0.98),
        ("Νίκος Σταυριδάκης", "Nikos Stavridakis", "person", 0.97),
        ("SOREN OESTERLUND", "Søren Østerlund", "person", 0.97),
        ("Kyōto", "Kyoto", "", 1.0),
        ("KyotoUniversity", "Kyoto University", "school", SAME_BUT_FORM),
        ("Appleby, Inc.", "Appleby", "company", SAME_BUT_FORM),
        ("Harrow and Finch Ltd", "Harrow & Finch", "company", SAME_BUT_FORM),
        ("Kaneko Foods K.K.", "Kaneko Foods Co., Ltd.", "company", SAME_BUT_FORM),
        ("River Don", "Don", "river", SAME_BUT_FORM),
        ("Frankfurt", "Frankfurt am Main", "place", LONGER),
        ("William Chesney", "William Arthur Chesney", "person", LONGER),
        ("H. E. Stannard", "Harold Edwin Stannard", "person", INITIALS),
        ("C.M. Whitcombe", "Clara Maud Whitcombe", "person", INITIALS),
        ("Fr. Wilh. Kötzschke", "Friedrich Wilhelm Kötzschke", "person", INITIALS),
        ("S. I. Newhouse", "Samuel Irving Newhouse", "person", INITIALS),
        ("J. Doe", "Jane Doe", "person", ONE_INITIAL),
        ("Thomas Avernathy", "Thomas Abernathy", "person", 0.94),
    ],
)
def test_spellings_of_one_name_meet(one: str, other: str, kind: str, least: float) -> None:
    """Alphabets, accents, order, initials, legal forms, slips."""
    assert likeness(one, other, kind).worth >= least


@pytest.mark.parametrize(
    ("one", "other", "kind", "most"),
    [
        ("Apollo 11", "Apollo 12", "", OTHER_NUMBER),
        ("Louis XIV", "Louis XV", "person", OTHER_NUMBER),
        ("Henry V.", "Henry I.", "person", OTHER_NUMBER),
        ("Meridian 7", "Meridian", "", OTHER_NUMBER),
        ("Jan Novak", "Jon Novak", "person", OTHER_ENDING),
        ("Anna Kowalska", "Anna Kowalski", "person", OTHER_ENDING),
        ("Don", "Dun", "river", 0.84),
        ("Miami University", "University of Miami", "school", 0.88),
        ("Newcastle upon Tyne", "Newcastle", "place", OTHER_ENDING),
        ("Indiana University", "Indiana University of Pennsylvania", "school", 0.84),
        ("Bluestone Capital", "Bluestone Logistics", "company", 0.84),
        ("William Chesney", "Walter Chesney", "person", 0.84),
    ],
)
def test_other_names_stay_apart(one: str, other: str, kind: str, most: float) -> None:
    """However alike the letters are."""
    assert likeness(one, other, kind).worth <= most


def test_a_letter_with_a_point_is_a_name_and_not_a_number() -> None:
    """Behind the first word Roman numerals are numbers."""
    assert numbers("S. I. Newhouse") == frozenset() and numbers("Henry V.") == {"v"}
    assert numbers("Louis XIV of France") == {"xiv"} and numbers("a quiet year i n Brno") == frozenset()


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("Appleby, Inc.", "Appleby"),
        ("Brenner & Söhne GmbH & Co. KG", "Brenner & Söhne"),
        ("Castellanos Hermanos, S.A. de C.V.", "Castellanos Hermanos"),
        ("Ardennes Acier S.A./N.V.", "Ardennes Acier"),
        ("株式会社大森精機", "大森精機"),
        ("ОАО Уралтурбомаш", "Уралтурбомаш"),
        ("Smith, Jones & Co. Ltd", "Smith, Jones"),
        ("Ashcombe & Sons", "Ashcombe & Sons"),
        ("AG", "AG"),
        ("", ""),
    ],
)
def test_a_legal_form_is_no_part_of_a_name(name: str, bare: str) -> None:
    """In front or behind; a name that is nothing else is kept."""
    assert without_legal_form(name) == bare


@pytest.mark.parametrize(
    ("text", "kind", "first"),
    [
        ("Doe, Jane", "person", ("Jane Doe", ())),
        ("Washington, John Lee, Jr.", "person", ("John Lee Washington Jr.", ())),
        ("Halloran, James Robert (1919–1994)", "person", ("James Robert Halloran", ())),
        ("Appleby, Inc.", "company", ("Appleby", ())),
        ("Burlington, Vermont, USA", "place", ("Burlington", ("Vermont", "USA"))),
        ("Springfield (Ohio)", "place", ("Springfield", ("Ohio",))),
        ("Paris, Texas", "other", ("Paris, Texas", ())),
        ("Star Is Born, A", "other", ("A Star Is Born", ())),
        ("Miami, University of", "school", ("University of Miami", ())),
        ("University of California, Los Angeles", "school", ("University of California, Los Angeles", ())),
        ("«Уралтурбомаш»", "company", ("Уралтурбомаш", ())),
    ],
)
def test_a_comma_means_what_the_kind_of_thing_makes_of_it(
    text: str, kind: str, first: tuple[str, tuple[str, ...]]
) -> None:
    """The likeliest reading comes first; the name as it stands is always among them."""
    found = readings(text, kind)
    assert (found[0].name, found[0].within) == first
    assert plain(text) in [reading.name for reading in found]


@given(NAMES, KINDS)
def test_every_name_has_a_reading(name: str, kind: str) -> None:
    """Brackets, commas and legal forms are taken away only if a name remains."""
    assert bool(readings(name, kind)) == bool(plain(name))
    assert all(reading.name for reading in readings(name, kind))
    assert bool(plain(name)) == bool(name.split())


def test_a_forgotten_space_is_seen_at_the_capital() -> None:
    """But not within McDonald's initials or a shouted name."""
    assert apart("KyotoUniversity") == "Kyoto University"
    assert apart("KYOTO") == "KYOTO" and apart("eFnn") == "eFnn"


@pytest.mark.parametrize(
    ("said", "place", "called"),
    [
        ("Illinois", Item(frozenset({"Illinois"})), True),
        ("IL", Item(frozenset({"Illinois", "IL"})), True),
        ("Ill.", Item(frozenset({"Illinois"})), True),
        ("Va.", Item(frozenset({"Virginia"})), True),
        ("NSW", Item(frozenset({"New South Wales"})), True),
        ("UK", Item(frozenset({"United Kingdom"}), code="GB"), True),
        ("Yucatan", Item(frozenset({"Yucatán"})), True),
        ("MI", Item(frozenset({"Maine", "ME"})), False),
        ("Ohio", Item(frozenset({"Oregon"})), False),
        ("", Item(frozenset({"Ohio"})), False),
    ],
)
def test_places_are_called_as_people_write_them(said: str, place: Item, called: bool) -> None:
    """Postal codes only if the place has that alias: two letters fit too many names."""
    assert is_called(said, place) is called
