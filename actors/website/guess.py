"""Which encoding bytes are in that nobody labelled: by the letters that languages use most, and where they stand."""

from __future__ import annotations

import re
from itertools import pairwise

SAMPLE = 32_768
# Fewer letters than these tell nothing.
_LEAST_PAIRS = 4
_CYRILLIC = "оеаинтсрвлкмдпуяы"
# The letters beyond ASCII that languages use most, by the encodings that have them, the likelier first.
_LETTERS = {
    "cp1252": "éèàçùâêîôûëïüäöåøæñãõáíóúßœ",
    "cp1251": _CYRILLIC,
    "koi8-r": _CYRILLIC,
    "cp866": _CYRILLIC,
    "iso8859-5": _CYRILLIC,
    "cp1253": "αοιετνσρκπυςμληάέίόήύ",
    "cp1255": "יוהלאמרתבנשםד",
    "cp1256": "المنيوترهبعدسك",
    "cp1250": "ěščřžýáíéůúňťďąęłśćżźńóöüőűăđ",
    "iso8859-2": "ěščřžýáíéůúňťďąęłśćżźńóöüőűăđ",
    "cp1254": "ışğçöüâî",
    "cp874": "านรอกเงมยลวดทส่้ี",
}
_LATIN = frozenset({"cp1252", "cp1250", "iso8859-2", "cp1254"})
_WORD = re.compile(r"[^\W\d_]+")
_BETWEEN = re.compile(r"(?<=[^\W\d_])[^\x00-\x7f\w](?=[^\W\d_])")
_SIGN = re.compile(r"[^\x00-\x7f\w]")
_USUAL_SIGNS = frozenset("\xa0«»“”„‚’‘–—…€°№·•©®™§\u200e\u200f")
_LEAST = 0.25


def multibyte(body: bytes) -> str:
    """One of East Asia's encodings, if the bytes can be nothing else; empty otherwise."""
    sample = body[:SAMPLE]
    for codec, is_usual in (("cp932", _is_kana_of_windows), ("euc_jp", _is_kana_of_unix)):
        if (pairs := _pairs(sample, codec)) and sum(map(is_usual, pairs)) * 4 > len(pairs):
            return codec
    if pairs := _pairs(sample, "gb18030"):
        usual = [lead for lead, trail in pairs if 0xB0 <= lead <= 0xD7 and trail >= 0xA1]
        if len(usual) * 10 >= len(pairs) * 8:
            return "cp949" if sum(lead > 0xC8 for lead in usual) * 8 < len(usual) else "gb18030"
    if (pairs := _pairs(sample, "big5hkscs")) and sum(0xA4 <= lead <= 0xC6 for lead, _ in pairs) * 10 >= len(pairs) * 8:
        return "big5hkscs"
    return ""


def single_byte(body: bytes) -> str:
    """The encoding whose reading looks most like a language; empty if none does."""
    sample = body[:SAMPLE]
    scores = {codec: _score(_decoded(sample, codec), letters, codec in _LATIN) for codec, letters in _LETTERS.items()}
    best = max(scores, key=lambda codec: scores[codec])
    return best if scores[best] >= _LEAST else ""


def _pairs(sample: bytes, codec: str) -> list[tuple[int, int]]:
    """The characters of two bytes, if the sample can be read, has some, and few other bytes beyond ASCII."""
    try:
        # the sample may end within a character
        sample[: sample.rfind(b"<")].decode(codec)
    except UnicodeDecodeError:
        return []
    pairs = []
    at = 0
    while at < len(sample) - 1:
        if sample[at] < 0x80 or (codec == "cp932" and 0xA0 <= sample[at] < 0xE0):
            at += 1
            continue
        pairs.append((sample[at], sample[at + 1]))
        at += 2
    lone = sum(byte >= 0x80 for byte in sample) - sum((a >= 0x80) + (b >= 0x80) for a, b in pairs)
    return pairs if len(pairs) >= _LEAST_PAIRS and lone * 5 <= len(pairs) else []


def _is_kana_of_windows(pair: tuple[int, int]) -> bool:
    lead, trail = pair
    return (lead == 0x82 and 0x9F <= trail <= 0xF1) or (lead == 0x83 and 0x40 <= trail <= 0x96)


def _is_kana_of_unix(pair: tuple[int, int]) -> bool:
    return pair[0] in {0xA4, 0xA5} and pair[1] >= 0xA1


def _decoded(sample: bytes, codec: str) -> str:
    return sample.decode(codec, "replace")


def _score(text: str, letters: str, latin: bool) -> float:
    """How usual the characters beyond ASCII are, each between -2 and 1."""
    score = 0.0
    for word in _WORD.findall(text):
        high = [letter for letter in word if letter > "\x7f"]
        if not high:
            continue
        score += sum(letter.lower() in letters for letter in high)
        foreign = _longest_run(word) >= 3 if latin else len(high) < len(word)
        odd_case = not word.isupper() and any(a.islower() and b.isupper() for a, b in pairwise(word))
        score -= len(high) * (1.5 * foreign + odd_case)
    signs = _SIGN.findall(text)
    score += sum(0.3 if sign in _USUAL_SIGNS else -1.0 for sign in signs) - 2.0 * len(_BETWEEN.findall(text))
    count = sum(sign > "\x7f" for sign in text)
    return score / count if count else 0.0


def _longest_run(word: str) -> int:
    return max(map(len, re.findall(r"[^\x00-\x7f]+", word)), default=0)
