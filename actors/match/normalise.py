"""Names in a form in which spellings of the same name meet. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LONGEST_NAME = 500

# Letters that NFKD leaves alone, and alphabets that have a usual way into Latin letters.
_SPELT_OUT = """
    ß=ss ø=o ł=l đ=d æ=ae œ=oe þ=th ð=d ı=i ŋ=ng
    а=a б=b в=v г=g д=d е=e ж=zh з=z и=i к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts ч=ch ш=sh щ=shch
    ъ= ы=y ь= э=e ю=yu я=ya є=ye і=i ґ=g ђ=dj ј=j љ=lj њ=nj ћ=c џ=dz қ=q ң=ng ү=u ө=o
    α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o
"""
_LETTERS = str.maketrans({pair[0]: pair[2:] for pair in _SPELT_OUT.split()})
# Two Greek letters that are one sound.
_GREEK_PAIRS = (("ου", "ou"), ("αυ", "av"), ("ευ", "ev"))

# Spellings of one sound, longest first; the order matters.
_SOUNDS = (
    ("shch", "s"),
    ("tsch", "c"),
    ("tch", "c"),
    ("sch", "s"),
    ("zh", "z"),
    ("kh", "h"),
    ("sh", "s"),
    ("ch", "c"),
    ("ph", "f"),
    ("th", "t"),
    ("ck", "k"),
    ("ts", "c"),
    ("tz", "c"),
    ("cz", "c"),
    ("sz", "s"),
    ("ae", "a"),
    ("oe", "o"),
    ("ue", "u"),
    ("ou", "u"),
    ("x", "ks"),
    ("q", "k"),
    ("w", "v"),
    ("y", "i"),
    ("j", "i"),
)
_EMPTY_WORDS = "the and for from with who was his her der die das und von les des une del los las"
_TWICE = re.compile(r"([^\W\d])\1+")
_NOT_WORD = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+")
# One letter with a point and more behind it is a name, not a number: S. I. Newhouse, but Henry V.
_INITIAL = re.compile(r"\b[IVX]\.(?=\s*\w)")
_ROMAN = re.compile(r"(?=.)x{0,3}(ix|iv|v?i{0,3})")


@lru_cache(maxsize=20_000)
def fold(text: str) -> str:
    """Lower-case words without accents, Cyrillic and Greek in Latin letters; folding again changes nothing."""
    plain = unicodedata.normalize("NFKD", text[:LONGEST_NAME]).casefold()
    bare = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    for pair, latin in _GREEK_PAIRS:
        bare = bare.replace(pair, latin)
    return _NOT_WORD.sub(" ", bare.translate(_LETTERS).replace("'", "").replace("’", "")).strip()


@lru_cache(maxsize=20_000)
def sound(text: str) -> str:
    """The folded name with spellings of one sound made equal: Tschaikowski, Tchaikovsky and Чайковский meet."""
    heard = fold(text)
    for spelling, letter in _SOUNDS:
        heard = heard.replace(spelling, letter)
    return _TWICE.sub(r"\1", heard)


def numbers(text: str) -> frozenset[str]:
    """Numbers in a name, Roman ones behind the first word too: Apollo 11 is not Apollo 12, nor Louis XIV Louis XV."""
    bare = _INITIAL.sub(" ", text)
    words = fold(bare).split()
    roman = {word for word in words[1:] if len(word) <= 6 and _ROMAN.fullmatch(word)}
    # A single small letter is a word, or half of one.
    roman = {word for word in roman if len(word) > 1 or re.search(rf"\b{word.upper()}\b", bare)}
    return frozenset(_NUMBER.findall(" ".join(words))) | roman


def words(text: str) -> frozenset[str]:
    """The words of a description that say something."""
    return frozenset(word for word in fold(text).split() if len(word) > 2 and word not in _EMPTY_WORDS.split())
