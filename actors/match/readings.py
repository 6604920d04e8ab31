"""What a name in a record may mean: ``Doe, Jane`` is Jane Doe, ``Paris, Texas`` a town or a film. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from actors.match.legal_forms import without_legal_form
from actors.match.normalise import LONGEST_NAME, fold

_BRACKETS = re.compile(r"\s*[(\[（]([^()\[\]（）]*)[)\]）]")
_QUOTES = str.maketrans(dict.fromkeys('«»“”„"', " "))
_ARTICLES = frozenset("a an the der die das le la les el los las il lo gli i o os as de het en et".split())  # noqa: SIM905
_OPEN_ENDS = frozenset("of de di da do du del della der des für fur van von".split())  # noqa: SIM905
_RUN_TOGETHER = re.compile(r"(?<=[^\W\d_]{2})(?<![A-Z])(?=[A-Z][^\W\d_]*[a-z])")
# Not a part of anybody's name; a Lord or a Sister may be.
_TITLES = re.compile(r"^(?:(?:dr|prof|mr|mrs|ms|sir|dame|rev|hon|herr|frau|mme)\b\.?\s+)+(?=\S)", re.IGNORECASE)
_DEGREES = re.compile(r"(?:,?\s+(?:ph\.?\s?d|m\.?d|esq|obe|cbe|frs|mp|bart)\b\.?)+$", re.IGNORECASE)
# ``Stannard HE`` as bibliographies have it. ``Casimir V`` is a king.
_INITIALS_LAST = re.compile(r"(?P<family>.*[^\W\d_A-Z].*?)\s+(?P<initials>(?:[A-Z](?:\.|\b)?[ -]?){1,3})")
_ROMAN = re.compile(r"[IVX]+")
MOST_PARTS = 4


@dataclass(frozen=True)
class Reading:
    """A name to look for; of a place, also what it lies in (``Illinois``, ``USA``)."""

    name: str
    within: tuple[str, ...] = ()


def readings(text: str, kind: str) -> tuple[Reading, ...]:
    """All that the name may mean, the likeliest for this kind first. At least one, unless it is empty."""
    name = plain(text)
    if not name:
        return ()
    found = [Reading(name)]
    parts = [part.strip() for part in name.split(",") if part.strip()]
    if kind in ("", "company"):
        found.insert(0, Reading(without_legal_form(name)))
    if kind == "person":
        name = _untitled(name)
        parts = [part.strip() for part in name.split(",") if part.strip()]
        found = [*_initials_first(name), Reading(name), *found]
    if kind == "place":
        found = [*_of_places(text, name, parts), *found, *_without_comma(name, parts)]
    elif 1 < len(parts) <= MOST_PARTS:
        turned = Reading(_turned(parts))
        found = [turned, *found] if kind == "person" or _is_heading(parts) else [*found, turned]
        if kind == "":
            found += _of_places(text, name, parts)
    return tuple(dict.fromkeys(found))


def plain(text: str) -> str:
    """The name without brackets, quotes and needless spaces."""
    bare = _BRACKETS.sub(" ", text[:LONGEST_NAME]).strip() or text[:LONGEST_NAME]
    return " ".join((bare.translate(_QUOTES).strip(" ,;") or bare).split())


def in_brackets(text: str) -> str:
    """What stands in brackets behind a name, without them: a hint such as ``painter`` or ``1919–1994``."""
    return " ".join(part.strip() for part in _BRACKETS.findall(text[:LONGEST_NAME]))


def apart(name: str) -> str:
    """``KyotoUniversity`` with the space that was forgotten."""
    return _RUN_TOGETHER.sub(" ", name)


def _of_places(text: str, name: str, parts: list[str]) -> list[Reading]:
    """``City, State[, Country]`` and ``City (State)``."""
    bracketed = tuple(part.strip() for part in _BRACKETS.findall(text[:LONGEST_NAME]) if part.strip())
    if 1 < len(parts) <= MOST_PARTS:
        return [Reading(parts[0], (*parts[1:], *bracketed))]
    return [Reading(name, bracketed)] if bracketed else []


def _without_comma(name: str, parts: list[str]) -> list[Reading]:
    """``Athens GA``, ``Portland Maine``: the last word may be where it is."""
    city, _, state = name.rpartition(" ")
    return [Reading(city, (state,))] if len(parts) == 1 and len(city) > 2 and state else []


def _untitled(name: str) -> str:
    """Without ``Dr.`` in front and ``PhD`` behind."""
    return _DEGREES.sub("", _TITLES.sub("", name)) or name


def _initials_first(name: str) -> list[Reading]:
    found = _INITIALS_LAST.fullmatch(name)
    if not found or _ROMAN.fullmatch(found["initials"].strip()) or "," in name:
        return []
    letters = [letter for letter in found["initials"] if letter.isalpha()]
    return [Reading(" ".join([*(f"{letter}." for letter in letters), found["family"]]))]


def _is_heading(parts: list[str]) -> bool:
    """``Star Is Born, A`` and ``Miami, University of``: put so that they sort well."""
    last = fold(parts[-1]).split()
    return bool(last) and len(parts) == 2 and (parts[-1].lower() in _ARTICLES or last[-1] in _OPEN_ENDS)


def _turned(parts: list[str]) -> str:
    """Family name, given names, and what stands behind both, such as ``Jr.``."""
    family, given, *behind = parts
    return " ".join([given, family, *behind])
