"""Cuts a price text into numbers, currency marks, words and signs. Linear, and bounded in length."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass, field

from actors.scrape.price import numerals, words
from actors.scrape.price.currencies import pattern

LONGEST = 400
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_PHRASES = sorted((word for word in words.ALL if re.search(f"[{_CJK}]", word)), key=lambda word: (-len(word), word))
_DATES = (
    r"\d{4}(?P<by>[-./])\d{1,2}(?P=by)\d{1,2}(?:T\d{2}:\d{2}(?::\d{2})?Z?)?(?!\d)",
    r"\d{1,2}(?P<of>[-./]) ?\d{1,2}(?P=of) ?(?:\d{4}|\d{2})(?![\d.,])",
    r"\d{4}年(?:\d{1,2}月)?(?:\d{1,2}日)?|\d{1,2}月(?:\d{1,2}日)?",
    r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\b\.?)?(?!\d)",
)
_LETTER = rf"(?:(?![{_CJK}])[^\W\d_])"
_LEXER = re.compile(
    "|".join(
        (
            *(f"(?<![\\d.,])(?P<date{at}>{date})" for at, date in enumerate(_DATES)),
            r"(?P<share>[-+]?(?<![\d.,])\d+(?:[.,]\d+)? ?%|% ?\d+(?:[.,]\d+)?)",
            r"(?P<split>(?<![\d.,])\d{1,6}[€£]\d{2}(?![\d.,]))",
            rf"(?P<phrase>{'|'.join(map(re.escape, _PHRASES))})",
            rf"(?P<mark>{pattern()})",
            rf"(?P<number>{numerals.PATTERN})",
            rf"(?P<word>{_LETTER}+(?:['’]{_LETTER}+|&{_LETTER}+)?|[{_CJK}])",
            r"(?P<sign>\S)",
        )
    )
)
_SUPERSCRIPT = re.compile(r"(?<=\d)[.,]?([⁰¹²³⁴⁵⁶⁷⁸⁹]{2})(?![⁰¹²³⁴⁵⁶⁷⁸⁹\d])")
_QUOTES = str.maketrans("’‘`´ʼ′＇٬", "''''''''")
_DASHES = str.maketrans("‐‑‒–—―−﹣－〜～∼≈≃", "-" * 9 + "~" * 5)
_SPACES = re.compile(r"[^\S\n]+")


@dataclass(frozen=True)
class Token:
    """``tight``: no space before it. ``kind`` is number, mark, word, share (of a hundred), date or sign."""

    kind: str
    text: str
    tight: bool = False
    low: str = field(default="", compare=False)


def clean(text: str) -> str:
    """One writing for what looks alike: digits, signs and spaces; entities read, invisible characters gone."""
    plain = _SUPERSCRIPT.sub(lambda found: "." + unicodedata.normalize("NFKC", found[1]), html.unescape(text))
    plain = unicodedata.normalize("NFKC", plain.translate(_QUOTES).translate(_DASHES)).translate(_QUOTES)
    kept = "".join(_character(sign) for sign in plain.replace("\r", "\n"))
    return _SPACES.sub(" ", kept.translate(_DASHES)).strip()


def _character(sign: str) -> str:
    kind = unicodedata.category(sign)
    if kind == "Nd":
        return str(unicodedata.decimal(sign))
    return "" if kind == "Cf" or (kind == "Cc" and sign not in "\n\t") else sign


def tokens(text: str) -> list[Token]:
    """The tokens of a cleaned text; a line break is a sign of its own."""
    found: list[Token] = []
    end = 0
    for match in _LEXER.finditer(text.replace("\n", " ⏎ ")):
        tight, end = match.start() == end and bool(found), match.end()
        found.extend(_token(match.lastgroup or "sign", match.group(), tight))
    return found


def _token(kind: str, text: str, tight: bool) -> list[Token]:
    low = text.lower()
    if kind.startswith("date"):
        return [Token("date", text, tight, low)]
    if kind == "split":  # 12€50
        whole, sign, cents = re.split(r"([€£])", text)
        return [Token("number", f"{whole}.{cents}", tight), Token("mark", sign, True, sign)]
    return [Token("word" if kind == "phrase" else kind, text, tight, low)]
