"""A token budget without a tokenizer: an estimate that leans high, and text cut where a reader would pause.

The estimate counts one token for every four ASCII letters of a word, three digits, two letters of other
alphabets, one for every CJK character and every other sign. Real tokenizers usually need fewer.
"""

from __future__ import annotations

import re

_PIECES = re.compile(
    r"(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<single>[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef])"
    r"|(?P<other>[^\W\d_\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffefA-Za-z]+)|(?P<sign>\S)|(?P<gap>\n)"
)
_PER_TOKEN = {"letters": 4, "digits": 3, "single": 1, "other": 2, "sign": 1, "gap": 1}
_SENTENCE_END = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+)\s*")
CUT_MARK = " […]"


def estimate_tokens(text: str) -> int:
    """How many tokens ``text`` will cost, roughly and rather too many."""
    return sum(_cost(piece) for piece in _PIECES.finditer(text))


def cut_text(text: str, budget: int) -> str:
    """The beginning of ``text`` that fits ``budget`` tokens, ended at a paragraph, sentence or word.

    A text that fits is returned unchanged. A shortened one ends with ``CUT_MARK`` (within the budget), and
    never with a heading whose paragraph is gone.
    """
    if estimate_tokens(text) <= budget:
        return text
    room = budget - estimate_tokens(CUT_MARK)
    if room <= 0:
        return ""
    fitting = text[: _fitting_length(text, room)]
    kept = _without_last_heading(_at_pause(text, fitting))
    return kept + CUT_MARK if kept else ""


def _cost(piece: re.Match[str]) -> int:
    size = len(piece.group())
    return -(-size // _PER_TOKEN[piece.lastgroup or "sign"])


def _fitting_length(text: str, room: int) -> int:
    spent = 0
    for piece in _PIECES.finditer(text):
        spent += _cost(piece)
        if spent > room:
            left = room - (spent - _cost(piece))
            return piece.start() + left * _PER_TOKEN[piece.lastgroup or "sign"]
    return len(text)


def _at_pause(text: str, fitting: str) -> str:
    """Prefer the last paragraph, then sentence, then word, as long as half of what fits is kept."""
    if text[len(fitting) : len(fitting) + 1] == "\n":
        return fitting.rstrip()
    ends = [fitting.rfind("\n"), _last_sentence_end(fitting), fitting.rfind(" ")]
    for end in (max(ends[0], ends[1]), ends[2]):
        if end >= len(fitting) // 2:
            return fitting[:end].rstrip()
    return fitting.rstrip()


def _last_sentence_end(text: str) -> int:
    return max((found.end() for found in _SENTENCE_END.finditer(text)), default=-1)


def _without_last_heading(text: str) -> str:
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or re.match(r"#{1,6} ", lines[-1])):
        lines.pop()
    return "\n".join(lines)
