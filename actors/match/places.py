"""Whether a place lies where a record says: ``Ill.``, ``NSW``, ``UK``, ``Vermont, USA``. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from actors.match.candidates import Item
from actors.match.normalise import fold

# What people call countries and Wikidata's label does not say.
_CODES = {"uk": "GB", "great britain": "GB", "usa": "US", "us": "US", "america": "US", "ussr": "SU", "uae": "AE"}


def is_called(said: str, place: Item) -> bool:
    """The name, an alias, the initials of the name, or a shortened name that ends with a point."""
    folded = fold(said)
    if not folded:
        return False
    letters = folded.replace(" ", "")
    if place.code and (said.strip().upper() == place.code or _CODES.get(letters) == place.code):
        return True
    names = [fold(name) for name in place.names]
    if folded in names:
        return True
    if said.strip().endswith(".") and not said.isupper():
        return any(_shortened(letters, name) for name in names)
    return said.isupper() and any(letters == _initials(name) for name in names)


def any_called(said: str, places: Iterable[Item]) -> bool:
    """Whether one of them is."""
    return any(is_called(said, place) for place in places)


def _initials(name: str) -> str:
    words = [word for word in name.split() if word not in ("of", "and", "the")]
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _shortened(letters: str, name: str) -> bool:
    """``ill`` for illinois, ``va`` for virginia, ``nsw`` for new south wales: its letters in their order."""
    rest = iter(name.replace(" ", ""))
    return len(letters) > 1 and name[:1] == letters[0] and all(letter in rest for letter in letters)
