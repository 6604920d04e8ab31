"""How alike two names are, and in what they differ. Pure.

Each comparison is worth a number between 0 and 1. Whatever is less than the same name needs something else that agrees
before it can be a match (``score.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from actors.match.legal_forms import without_legal_form
from actors.match.normalise import fold, numbers, sound

SAME, SAME_BUT_FORM, SAME_SOUND = 1.0, 0.98, 0.97
OTHER_ORDER, LONGER, INITIALS, ONE_INITIAL = 0.98, 0.93, 0.93, 0.90
ONE_SLIP, TWO_SLIPS, OTHER_ENDING = 0.94, 0.93, 0.86
# Miami University is not the University of Miami, and Newcastle upon Tyne not any Newcastle: a date must agree as well.
OTHER_SCHOOL, SAYS_MORE = 0.88, 0.86
MOST_OTHERWISE, OTHER_NUMBER = 0.84, 0.60

# A name of so many letters is not another one because a small word in it differs.
LONG = 10

_AND = frozenset({"and", "und", "et", "og", "och", "en"})
_SMALL = frozenset("a an and at by da de del der des di do du la le los of on the und von".split())  # noqa: SIM905
# What a river is called besides its name, in the languages of its banks.
_RIVER = frozenset("river rivers rio riviere fleuve fluss strom reka rieka rzeka fiume folyo nehri he jiang".split())  # noqa: SIM905
_JOINS = frozenset("am an bei upon on sur in ob der nad im del de sul".split())  # noqa: SIM905
_CITY = frozenset({"city", "town", "stadt", "ciudad"})
_WRITTEN_OUT = {"st": "saint", "ste": "sainte", "ft": "fort", "mt": "mount"}
_WORD = re.compile(r"[^\W_]+\.?")


@dataclass(frozen=True)
class Likeness:
    """What a comparison is worth, and why in words."""

    worth: float
    how: str


@lru_cache(maxsize=50_000)
def likeness(one: str, other: str, kind: str = "") -> Likeness:
    """The best of all ways to compare the name of a record with a label; ``kind`` says which make sense."""
    if not fold(one) or not fold(other):
        return Likeness(0.0, "one of them has no letters")
    found = max(_ways(one, other, kind), key=lambda way: way.worth)
    if numbers(one) != numbers(other) and found.worth > OTHER_NUMBER:
        return Likeness(OTHER_NUMBER, "the numbers differ")
    return found


def _ways(one: str, other: str, kind: str) -> Iterator[Likeness]:
    first, second = fold(one), fold(other)
    if first == second:
        yield Likeness(SAME, "the same")
        return
    if first.replace(" ", "") == second.replace(" ", ""):
        yield Likeness(SAME_BUT_FORM, "the same but for spaces")
    if _bare(one, kind) == _bare(other, kind):
        yield Likeness(SAME_BUT_FORM, "the same without what kind of thing it is")
    if sound(one) == sound(other):
        yield Likeness(SAME_SOUND, "the same sound")
    if sorted(first.split()) == sorted(second.split()):
        yield Likeness(OTHER_ORDER if kind in ("", "person") else LONGER, "the same words in another order")
    elif sorted(sound(one).split()) == sorted(sound(other).split()):
        yield Likeness(LONGER, "words of the same sound in another order")
    if kind in ("", "person"):
        yield from _of_people(one, other)
    if kind == "school" and _important(first) == _important(second):
        yield Likeness(OTHER_SCHOOL, "the same words but small ones")
    if kind == "place" and _extends(first, second):
        yield Likeness(LONGER, "the label says more about where it is")
    if kind == "place" and _extends(second, first):
        yield Likeness(SAYS_MORE, "the record says more about where it is")
    yield from _slips(_bare(one, kind), _bare(other, kind), kind)
    yield from _slips(sound(one), sound(other), kind)
    yield Likeness(min(_ratio(first, second) - 0.1, MOST_OTHERWISE), "some letters in common")


def _bare(name: str, kind: str) -> str:
    """Without a company's legal form, a river's ``river``; ``&`` and the words for it are one."""
    if kind in ("", "company"):
        name = without_legal_form(name)
    parts = fold(name.replace("&", " and ")).split()
    if kind in ("place", "school"):
        parts = [_WRITTEN_OUT.get(word, word) for word in parts]
    if kind == "company" and len(parts) > 1 and parts[0] == "the":
        parts = parts[1:]
    if kind == "river":
        parts = [word for word in parts if word not in _RIVER and word != "the"] or parts
    if kind == "company":
        parts = ["and" if word in _AND else word for word in parts]
    return " ".join(parts)


def _important(folded: str) -> frozenset[str]:
    return frozenset(folded.split()) - _SMALL


def _extends(shorter: str, longer: str) -> bool:
    """``Frankfurt`` and ``Frankfurt am Main``, ``Ho Chi Minh`` and ``Ho Chi Minh City``."""
    if not longer.startswith(shorter + " "):
        return False
    rest = longer[len(shorter) + 1 :].split()
    return (rest[0] in _JOINS and len(rest) > 1) or (len(rest) == 1 and rest[0] in _CITY)


def _of_people(one: str, other: str) -> Iterator[Likeness]:
    """Initials, shortened given names, and given names that only one of the two has."""
    ones, others = parts(one), parts(other)
    if len(ones) < 2 or len(others) < 2 or not _same_word(ones[-1], others[-1]) or len(ones[-1]) < 3:
        return
    shorter, longer = sorted((ones[:-1], others[:-1]), key=len)
    if not _fits(shorter[0], longer[0]) or not _in_order(shorter, longer):
        return
    full = any(_same_word(name, other) for name in shorter for other in longer)
    if full and all(any(_same_word(name, other) for other in longer) for name in shorter):
        yield Likeness(LONGER, "one has more given names")
    elif full or len(shorter) > 1:
        yield Likeness(INITIALS, "the given names fit, some shortened")
    else:
        yield Likeness(ONE_INITIAL, "one initial fits")


def parts(name: str) -> list[str]:
    """The words of a person's name; a shortened one keeps its point, initials written together are taken apart."""
    found: list[str] = []
    for word in _WORD.findall(name.replace("'", "").replace("’", "")):
        plain = fold(word)
        if len(plain) in (2, 3) and word.isupper() and not name.isupper():
            found += [f"{letter}." for letter in plain]
        else:
            found.append(plain + "." if word.endswith(".") or len(plain) == 1 else plain)
    return [word for word in found if word != "."]


def _in_order(shorter: list[str], longer: list[str]) -> bool:
    rest = iter(longer)
    return all(any(_fits(name, other) for other in rest) for name in shorter)


def _fits(one: str, other: str) -> bool:
    """The same name, or one is the beginning of the other and says so with a point."""
    if _same_word(one, other):
        return True
    return any(a.endswith(".") and b.startswith(a.rstrip(".")) for a, b in ((one, other), (other, one)))


def _same_word(one: str, other: str) -> bool:
    return (one == other and not one.endswith(".")) or (len(one) > 3 and sound(one) == sound(other))


def _slips(one: str, other: str, kind: str) -> Iterator[Likeness]:
    """At most two slips of the finger; short words allow fewer, because one letter makes them another word."""
    least = min(len(one), len(other))
    allowed = 0 if least < 5 else 1 if least < 8 else 2
    slips = OSA.distance(one, other, score_cutoff=allowed) if allowed else 1
    if not 0 < slips <= allowed:
        return
    if _another_word(one.split(), other.split(), kind):
        yield Likeness(OTHER_ENDING, "one short word or an ending differs")
    else:
        yield Likeness(ONE_SLIP if slips == 1 else TWO_SLIPS, f"written with {slips} slip{'s' * (slips > 1)}")


def _another_word(ones: list[str], others: list[str], kind: str) -> bool:
    if len(ones) != len(others):
        return False
    for one, other in zip(ones, others, strict=True):
        if one != other:
            short = min(len(one), len(other)) < 4 and (kind == "person" or sum(map(len, ones)) < LONG)
            ending = kind == "person" and (one[:-1] == other[:-1] or other in (one[:-1], one + other[-1]))
            if short or ending:
                return True
    return False


def _ratio(one: str, other: str) -> float:
    return max(fuzz.ratio(one, other), fuzz.token_sort_ratio(one, other)) / 100
