"""Ten ways in which a catalogue's name differs from Wikidata's."""

from __future__ import annotations

import random
from collections.abc import Callable

from sandbox.wikidata_world import Known

_WITHOUT_ACCENTS = """
    ä=ae ö=oe Ö=Oe ü=ue ß=ss ø=oe Ø=Oe å=aa Å=Aa æ=ae ł=l Ł=L é=e É=E è=e á=a Á=A â=a ą=a í=i Í=I ñ=n ú=u Ż=Z Ś=S
"""
_ASCII = {pair[0]: pair[2:] for pair in _WITHOUT_ACCENTS.split()}
_SCHOLARLY = (
    ("shch", "šč"),
    ("Shch", "Šč"),
    ("ch", "č"),
    ("Ch", "Č"),
    ("sh", "š"),
    ("zh", "ž"),
    ("Zh", "Ž"),
    ("kh", "ch"),
    ("Kh", "Ch"),
    ("Ya", "Ja"),
    ("Ye", "Je"),
    ("ya", "ia"),
    ("y", "ij"),
    ("w", "v"),
)


def _typo(dice: random.Random, person: Known) -> str:
    """One slip of the finger, not in the first letter."""
    name = person.name
    place = dice.randrange(1, len(name) - 1)
    slip = dice.choice(("swap", "drop", "double", "other"))
    if slip == "swap":
        return name[:place] + name[place + 1] + name[place] + name[place + 2 :]
    middle = {"drop": "", "double": name[place] * 2, "other": dice.choice("aeiorstn")}[slip]
    return name[:place] + middle + name[place + 1 :]


def _two_typos(dice: random.Random, person: Known) -> str:
    once = Known("", {"en": _typo(dice, person)}, "")
    return _typo(dice, once)


def _turned(_: random.Random, person: Known) -> str:
    given, _gap, family = person.name.rpartition(" ")
    return f"{family}, {given}"


def _initial(_: random.Random, person: Known) -> str:
    given, _gap, family = person.name.rpartition(" ")
    return f"{' '.join(word[0] + '.' for word in given.split())} {family}"


def _plain_ascii(_: random.Random, person: Known) -> str:
    """As a typewriter without accents has it, the German way where there is one."""
    return "".join(_ASCII.get(letter, letter) for letter in person.name)


def _other_alphabet(_: random.Random, person: Known) -> str:
    return next((person.labels[code] for code in ("ru", "el", "ja", "zh", "de") if code in person.labels), person.name)


def _other_romanisation(_: random.Random, person: Known) -> str:
    """As scholars and passports write it, which no catalogue here does."""
    name = person.name
    for usual, other in _SCHOLARLY:
        name = name.replace(usual, other)
    return name


def _exact(_: random.Random, person: Known) -> str:
    return person.name


def _shouted(_: random.Random, person: Known) -> str:
    return f"  {person.name.upper()}  ({person.description.split()[1]})"


WAYS: tuple[tuple[str, Callable[[random.Random, Known], str]], ...] = (
    ("typo", _typo),
    ("typo", _typo),
    ("two typos", _two_typos),
    ("family name first", _turned),
    ("initials", _initial),
    ("no accents", _plain_ascii),
    ("other alphabet", _other_alphabet),
    ("other romanisation", _other_romanisation),
    ("exact", _exact),
    ("shouted", _shouted),
)
